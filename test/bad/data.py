"""Initializers whose data do not fit: sizes, types, sparse indices, and external files in places they must not be."""
import os

import numpy as np

from .kit import F, I, T, const, floats, h, ints, model, val


def with_init(t, sparse=()):
    """y = x + w with w the initializer under test."""
    return model([h.make_node("Add", ["x", "w"], ["y"], "culprit")], [val("x")], [val("y")], [t] if t else [],
                 sparse=sparse)


def tensor(**fields):
    t = T(name="w", data_type=F, dims=[2, 3])
    for key, value in fields.items():
        if isinstance(value, (list, tuple)):
            del getattr(t, key)[:]
            getattr(t, key).extend(value)
        else:
            setattr(t, key, value)
    return t


def sizes(b):
    for name, t in {
        "raw_short": tensor(raw_data=bytes(23)), "raw_long": tensor(raw_data=bytes(25)),
        "raw_empty": tensor(raw_data=b""), "raw_absent": tensor(),
        "float_data_short": tensor(float_data=[1.0] * 5), "float_data_long": tensor(float_data=[1.0] * 7),
        "wrong_field": tensor(int32_data=[1] * 6), "wrong_field_i64": tensor(data_type=I, float_data=[1.0] * 6),
        "two_fields": tensor(raw_data=bytes(24), float_data=[1.0] * 6),
        "negative_dim": tensor(dims=[-2, 3], raw_data=bytes(24)),
        "both_negative": tensor(dims=[-2, -3], raw_data=bytes(24)),
        "dims_overflow_to_zero": tensor(dims=[1 << 32, 1 << 32], raw_data=b""),
        "dims_overflow_to_six": tensor(dims=[(1 << 62) + 1, 4, 6], raw_data=bytes(96)),
        "bytes_overflow": tensor(dims=[1 << 62], raw_data=bytes(24)),
        "dims_int64_max": tensor(dims=[(1 << 63) - 1], raw_data=bytes(24)),
        "dims_int64_min": tensor(dims=[-(1 << 63)], raw_data=bytes(24)),
        "huge_without_data": tensor(dims=[1 << 20, 1 << 20]),
        "int4_short": tensor(data_type=T.INT4, dims=[7], raw_data=bytes(3)),
        "f16_as_f32": tensor(data_type=T.FLOAT16, raw_data=bytes(24)),
        "bool_short": tensor(data_type=T.BOOL, raw_data=bytes(5)),
        "complex_short": tensor(data_type=T.COMPLEX64, raw_data=bytes(24)),
        "strings_short": tensor(data_type=T.STRING, string_data=[b"a"] * 5),
        "strings_raw": tensor(data_type=T.STRING, raw_data=bytes(24)),
    }.items():
        b.model("init_" + name, with_init(t), text="w", level="graph")
    b.model("init_type_0", with_init(tensor(data_type=0, raw_data=bytes(24))), code=(3, 4), text="w", level="graph")
    b.model("init_type_99", with_init(tensor(data_type=99, raw_data=bytes(24))), code=(3, 4), text="w", level="graph")
    b.model("init_type_negative", with_init(tensor(data_type=-1, raw_data=bytes(24))), code=(3, 4), text="w", level="graph")
    t = tensor(raw_data=bytes(24))
    t.segment.begin, t.segment.end = 0, 3
    b.model("init_segment", with_init(t), level="any")
    short = h.make_node("Constant", [], ["w"], "culprit", value=tensor(raw_data=bytes(20)))
    b.model("constant_raw_short", model([short, h.make_node("Add", ["x", "w"], ["y"])], [val("x")], [val("y")]),
            text="culprit", level="graph")
    disagree = with_init(const("w", floats(2, 3)))
    disagree.graph.input.append(val("w", F, (7, 7)))
    b.model("init_disagrees_with_input", disagree, level="any")


def sparse(b):
    def make(values, indices, dims=(2, 3)):
        s = h.make_sparse_tensor(const("w", np.asarray(values, np.float32)), const("", indices), list(dims))
        return with_init(None, [s])
    for name, values, indices in (
        ("index_too_big", [1, 2], ints(0, 6)), ("index_negative", [1, 2], ints(-1, 2)),
        ("index_int64_max", [1], ints((1 << 63) - 1)), ("duplicate", [1, 2], ints(3, 3)),
        ("unsorted", [1, 2], ints(4, 1)), ("count_differs", [1, 2, 3], ints(0, 1)),
        ("index_2d_out_of_range", [1, 2], np.array([[0, 1], [2, 0]], np.int64)),
        ("index_2d_wrong_width", [1, 2], np.array([[0, 1, 0], [1, 0, 0]], np.int64)),
        ("index_3d", [1], np.zeros((1, 1, 2), np.int64)), ("index_float", [1], floats(1)),
        ("values_2d", np.ones((2, 1)), ints(0, 1)),
    ):
        b.model("sparse_" + name, make(values, indices), text="w", level="graph")
    b.model("sparse_negative_dims", make([1], ints(0), (-2, 3)), text="w", level="graph")
    b.model("sparse_bomb", make([1], ints(0), (1 << 30, 1 << 20)), code=(3, 4, 5), text="w", level="graph")
    b.model("sparse_dims_overflow", make([1], ints(0), (1 << 33, 1 << 33)), code=(3, 4), text="w", level="graph")


def external(b):
    def make(**entries):
        t = tensor(data_location=T.EXTERNAL)
        for key, value in entries.items():
            t.external_data.add(key=key, value=value)
        return with_init(t)

    def case(name, prepare=None, code=4, **entries):
        folder = b.folder("ext_" + name)
        if prepare:
            prepare(folder)
        b.model("ext_" + name, make(**entries), code=code, text="w", level="graph")

    def put(path, size=24):
        with open(path, "wb") as f:
            f.write(bytes(size))

    outside = os.path.join(b.out, "outside.bin")
    put(outside)
    data = lambda d: put(os.path.join(d, "data.bin"))  # noqa: E731

    def link(make_link, target, name="data.bin"):
        def prepare(d):
            path = os.path.join(d, name)
            if os.path.lexists(path):
                os.unlink(path)
            make_link(target(d), path)
        return prepare

    case("parent", location="../outside.bin")
    case("parent_inside", lambda d: (os.makedirs(os.path.join(d, "sub"), exist_ok=True), data(d)),
         location="sub/../data.bin")
    case("parent_twice", lambda d: os.makedirs(os.path.join(d, "sub"), exist_ok=True), location="sub/../../outside.bin")
    case("absolute", location=os.path.abspath(outside))
    case("absolute_device", location="/dev/zero")
    case("proc", location="/proc/self/environ")
    case("symlink", link(os.symlink, lambda d: "../outside.bin"), location="data.bin")
    case("symlink_inside", lambda d: (put(os.path.join(d, "real.bin")), link(os.symlink, lambda _: "real.bin")(d)),
         location="data.bin")
    case("symlink_folder", link(os.symlink, lambda d: "..", "sub"), location="sub/outside.bin")
    case("symlink_loop", link(os.symlink, lambda d: "data.bin"), location="data.bin")
    case("hard_link", link(os.link, lambda d: outside), location="data.bin")
    case("missing", location="data.bin")
    case("folder", lambda d: os.makedirs(os.path.join(d, "data.bin"), exist_ok=True), location="data.bin")
    case("fifo", lambda d: os.path.exists(d + "/data.bin") or os.mkfifo(d + "/data.bin"), location="data.bin")
    case("empty_location", location="")
    case("no_location", data, offset="0")
    case("dot", location=".")
    case("nul", data, location="data.bin\0.txt")
    case("backslash", location="..\\outside.bin")
    case("long_name", location="d" * 5000)
    case("offset_past_end", data, location="data.bin", offset="25")
    case("offset_at_end", data, location="data.bin", offset="24")
    case("offset_negative", data, location="data.bin", offset="-8")
    case("offset_text", data, location="data.bin", offset="eight")
    case("offset_huge", data, location="data.bin", offset="99999999999999999999")
    case("length_short", data, location="data.bin", length="20")
    case("length_long", data, location="data.bin", length="28")
    case("length_huge", data, location="data.bin", length=str((1 << 63) - 1))
    case("length_negative", data, location="data.bin", length="-24")
    case("sum_overflow", data, location="data.bin", offset=str((1 << 64) - 8), length="24")
    case("file_short", lambda d: put(os.path.join(d, "data.bin"), 23), location="data.bin")
    case("file_empty", lambda d: put(os.path.join(d, "data.bin"), 0), location="data.bin")
    t = tensor(data_location=T.EXTERNAL, raw_data=bytes(24))
    t.external_data.add(key="location", value="data.bin")
    b.model("ext_raw_too", with_init(t), text="w", level="graph")


def cases(b):
    sizes(b)
    sparse(b)
    external(b)
