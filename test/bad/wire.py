"""Bad bytes: what is wrong before any meaning is looked at."""
import os
import random

from lib.onnxfile import chunk as field, varint

from .kit import F, T, const, floats, h, model, plain, relu, val


def ends(data):
    """Offsets at which a field of the outermost message ends: a cut there leaves a well-formed message."""
    at, out = 0, set()

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        kind = number() & 7
        if kind == 2:
            size = number()
            at += size
        else:
            number()
        out.add(at)
    return out


def truncated(b, good):
    cuts = sorted({max(1, len(good) * k // 40) for k in range(40)} | {len(good) - 1, 3, 5} - ends(good))
    for cut in cuts:
        if cut not in ends(good):
            b.raw(f"cut_{cut:05}", good[:cut])


def flipped(b, good):
    rng = random.Random(7)
    for k in range(30):
        data = bytearray(good)
        for _ in range(rng.choice((1, 1, 2, 8))):
            data[rng.randrange(len(data) if k % 2 else 200)] = rng.randrange(256)
        b.raw(f"flip_{k:02}", bytes(data), level="any", inputs=["x"])


def nested_graphs(depth):
    """If inside If, written by hand: the library refuses to go this deep."""
    body = field(1, field(2, b"y") + field(4, b"Relu") + field(1, b"x")) + field(12, field(1, b"y"))
    for _ in range(depth):
        attr = field(1, b"then_branch") + varint(20 << 3) + varint(5) + field(6, body)
        other = field(1, b"else_branch") + varint(20 << 3) + varint(5) + field(6, field(12, field(1, b"y")))
        node = field(1, b"c") + field(2, b"y") + field(4, b"If") + field(3, b"culprit") + field(5, attr) + field(5, other)
        body = field(1, node) + field(12, field(1, b"y"))
    return b"\x08\x08" + field(7, body + field(2, b"g")) + field(8, b"\x10\x11")


def nested_type(depth):
    t = field(1, b"\x08\x01")
    for _ in range(depth):
        t = field(4, field(1, t))
    value = field(1, b"x") + field(2, t)
    return b"\x08\x08" + field(7, field(2, b"g") + field(11, value) + field(12, value)) + field(8, b"\x10\x11")


def cases(b):
    good = plain().SerializeToString()
    truncated(b, good)
    flipped(b, good)
    for name, data in {  # what they are is known
        "html": b"<!DOCTYPE html><html><body>404</body></html>",
        "npy": b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n" + bytes(4),
        "gzip": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + bytes(40), "zip": b"PK\x03\x04" + bytes(60),
        "elf": b"\x7fELF\x02\x01\x01" + bytes(57),
    }.items():
        b.raw(name, data, code=3, text="(ingot reads ONNX, TensorFlow Lite, GGUF and safetensors)")
    for name, data in {
        "empty": b"", "one_byte": b"\x08", "text": b"This is not a model.\n" * 20, "zeros": bytes(64),
        "ones": b"\xff" * 64,
        "varint_11_bytes": b"\x08" + b"\x80" * 11 + b"\x01", "varint_no_end": b"\x08" + b"\x80" * 5,
        "field_zero": b"\x00\x01" + good, "wire_type_6": b"\x0e\x01" + good, "wire_type_7": b"\x0f\x01" + good,
        "group_no_end": b"\x0b" + good, "end_group": b"\x0c" + good,
        "length_past_end": b"\x08\x08\x3a\xff\xff\x7f" + good[10:40],
        "length_2_63": b"\x08\x08\x3a" + b"\xff" * 8 + b"\x7f" + bytes(20),
        "length_2_64": b"\x08\x08\x3a" + b"\xff" * 9 + b"\x01" + bytes(20),
        "inner_past_outer": b"\x08\x08\x3a\x04\x0a\x20ab" + good,
        "huge_field_number": b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" + good,
        "tail_of_ff": good + b"\xff" * 16, "tail_cut_field": good + b"\x12\x7f",
        "fixed64_cut": good + b"\x09\x01\x02", "fixed32_cut": good + b"\x0d\x01",
        "no_graph": b"\x08\x08" + field(8, b"\x10\x11"), "only_version": b"\x08\x08",
        "graph_as_varint": b"\x08\x08\x38\x05" + field(8, b"\x10\x11"),
        "graph_as_fixed32": b"\x08\x08\x3d\x01\x02\x03\x04" + field(8, b"\x10\x11"),
        "node_is_text": b"\x08\x08" + field(7, field(1, b"\xff\xfe not a node")) + field(8, b"\x10\x11"),
        "packed_dims_cut": b"\x08\x08" + field(7, field(5, field(1, b"\x80") + b"\x10\x01" + field(8, b"w"))),
    }.items():
        b.raw(name, data)
    os.makedirs(os.path.join(b.folder("directory"), "bad.onnx"), exist_ok=True)
    b.row("directory", os.path.join(b.folder("directory"), "bad.onnx"), code=(4, 5))
    b.row("absent", os.path.join(b.folder("absent"), "bad.onnx"), code=(4, 5))
    for depth in (18, 40, 300, 3000):
        b.raw(f"nested_if_{depth}", nested_graphs(depth), code=3, text="nested more than 16 deep", level="file" if depth > 100 else "graph")
    for depth in (200, 5000):
        b.raw(f"nested_type_{depth}", nested_type(depth), code=3, text="nested more than 64 deep", level="file")
    b.raw("graph_twice", good + good[2:], level="any")
    names(b)


def names(b):
    for name, text in {"long": "n" * (1 << 20), "newline": "a\nb\x1b[31m\r", "format": "%s%n%x", "quote": "\"'`$(x)*/"}.items():
        bad = [h.make_node("Mystery", ["x"], [text], text)]
        b.model("name_" + name, model(bad, [val("x")], [val(text)]), code=3, text="Mystery", level="graph")
    for name, raw in {"nul": b"a\0b", "not_utf8": b"\xff\xfe\x80", "surrogate": b"\xed\xa0\x80"}.items():
        data = model([relu(y="QQQ")], [val("x")], [val("QQQ")]).SerializeToString()
        b.raw("name_" + name, data.replace(b"QQQ", raw), level="any", inputs=["x"])
    b.model("name_empty_input", model([relu("", "y", "culprit")], [val("x")], [val("y")]), text="culprit", level="graph")
    many = h.make_tensor("w", F, [1] * 300, [1.0])
    b.model("rank_300", model([h.make_node("Add", ["x", "w"], ["y"])], [val("x")], [val("y")], [many]), code=(3, 4))
    kinds = model([relu()], [val("x", T.UNDEFINED)], [val("y")])
    b.model("input_undefined_type", kinds, code=(3, 4), level="graph")
    b.model("input_type_99", model([relu()], [val("x", 99)], [val("y")]), code=(3, 4))
    b.model("big_const", model([h.make_node("Add", ["x", "w"], ["y"], "culprit")], [val("x")], [val("y")],
            [const("w", floats(500, 7))]), text="culprit", level="graph")
