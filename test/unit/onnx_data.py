"""The other half of onnx_data.c: arrays as numpy and onnx write them, and a look at what came back.

    onnx_data.py write FOLDER   makes NAME.npy, NAME.pb for each line of names.txt, and all.npz, packed.npz
    onnx_data.py check FOLDER   compares out.npz, NAME.out.npy and NAME.out.pb with them
"""
import os
import sys
import numpy as np
import onnx
from onnx import numpy_helper


def arrays():
    base = np.arange(24).reshape(2, 3, 4) * 37 - 100
    for kind in ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "c8", "c16", "?"):
        x = base.astype(kind)
        name = x.dtype.name
        yield name, x
        yield name + "_big", x.astype(x.dtype.newbyteorder(">"))
        yield name + "_fortran", np.asfortranarray(x)
    yield "scalar", np.float32(2.5)
    yield "empty", np.zeros((0, 3), "f4")
    yield "line", np.arange(5, dtype="i4")
    yield "text", np.array([["a", "bc", ""], ["\u00e9\u20ac", "\U0001f600x", "zz"]])
    yield "text_big", np.array(["a", "\u20ac"]).astype(">U2")
    yield "bytes", np.array([b"ab", b"", b"\xff\xfe"])
    yield "many", np.random.default_rng(1).integers(0, 9, (300, 200)).astype("i2")
    yield "noise", np.random.default_rng(2).random(5000)
    yield "zeros", np.zeros(100000, "f4")


def tensor(x):
    x = np.asarray(x)
    if x.dtype.kind in "US":
        t = onnx.TensorProto(data_type=onnx.TensorProto.STRING, dims=x.shape)
        t.string_data.extend(s if isinstance(s, bytes) else s.encode() for s in x.ravel().tolist())
        return t
    return numpy_helper.from_array(np.array(x, dtype=x.dtype.newbyteorder("="), order="C"))


def write(folder):
    all_ = dict(arrays())
    for name, x in all_.items():
        np.save(os.path.join(folder, name + ".npy"), x)
        with open(os.path.join(folder, name + ".pb"), "wb") as f:
            f.write(tensor(x).SerializeToString())
    np.savez(os.path.join(folder, "all.npz"), **all_)
    np.savez_compressed(os.path.join(folder, "packed.npz"), **all_)
    with open(os.path.join(folder, "names.txt"), "w", encoding="ascii") as f:
        f.write("".join(name + "\n" for name in all_))


def same(name, x, y):
    x, y = np.asarray(x), np.asarray(y)
    assert x.shape == y.shape and x.dtype.kind == y.dtype.kind and np.array_equal(x, y), name


def check(folder):
    whole = np.load(os.path.join(folder, "out.npz"))
    all_ = dict(arrays())
    assert sorted(whole.files) == sorted(all_), whole.files
    for name, x in all_.items():
        same(name, whole[name], x)
        same(name, np.load(os.path.join(folder, name + ".out.npy")), x)
        t = onnx.TensorProto()
        with open(os.path.join(folder, name + ".out.pb"), "rb") as f:
            t.ParseFromString(f.read())
        if t.data_type == onnx.TensorProto.STRING:
            assert list(t.string_data) == list(tensor(x).string_data), name
        else:
            same(name, numpy_helper.to_array(t), x)


{"write": write, "check": check}[sys.argv[1]](sys.argv[2])
