"""Files that are not ONNX, whatever their names: the message says what they are and what helps. Exit code 3 for other formats, 4
for malformed files."""
import gzip
import io
import os
import struct
import zipfile
from lib import onnxfile as onnx
from lib.core import Test, want
from suite.cli import MODEL, Cli

CHECK = "*"


def archive(*names):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for name in names:
            z.writestr(name, b"x")
    return out.getvalue()


def graph_def():
    node = onnx.chunk(1, "x") + onnx.chunk(2, "Placeholder")
    return onnx.chunk(1, node) + onnx.chunk(1, onnx.chunk(1, "y") + onnx.chunk(2, "Relu") + onnx.chunk(3, "x")) + onnx.chunk(4, onnx.number(1, 27))


def foreign():
    with open(MODEL, "rb") as f:
        model = f.read()
    page = b"\r\n<!DOCTYPE html>\n<html lang=en><head><title>net.onnx</title>"
    return (
        ("ONNX Runtime (.ort)", "made from", struct.pack("<I", 28) + b"ORTM" + bytes(64)),
        ("GGML", "optimum-cli", b"tjgg" + bytes(64)),
        ("HDF5", "keras", b"\x89HDF\r\n\x1a\n" + bytes(64)),
        ("Git LFS", "git lfs pull", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"),
        ("PyTorch checkpoint", "torch.onnx.export", b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03."),
        ("PyTorch checkpoint", "torch.onnx.export", archive("net/data.pkl", "net/version")),
        ("TorchScript", "torch.jit.load", archive("net/data.pkl", "net/code/__torch__.py", "net/constants.pkl")),
        ("Python pickle", "skl2onnx", b"\x80\x04\x95\x10\0\0\0\0\0\0\0."),
        ("Keras", "keras", archive("metadata.json", "config.json", "model.weights.h5")),
        ("zip archive with an ONNX", "unzip", archive("readme.txt", "nets/a.onnx")),
        ("zip archive", "unzip", archive("readme.txt")),
        ("arrays (.npz)", "--inputs", archive("x.npy")),
        ("array (.npy)", "--input", b"\x93NUMPY\x01\0" + bytes(120)),
        ("gzip", "gunzip", gzip.compress(model)), ("(ELF), not a model", "the model that it was made from", b"\x7fELF\x02\x01\x01" + bytes(57)),
        ("web page", "the file itself", page),
        ("web page", "the file itself", b"<HTML><head>" + bytes(20)),
        ("OpenVINO", "made from", b'<?xml version="1.0"?>\n<net name="a" version="11">\n'),
        ("TensorFlow.js", "--tfjs", b'{"format": "graph-model", "modelTopology": {}}'),
        ("GraphDef", "--graphdef", graph_def()),
        ("SavedModel", "--saved-model", onnx.number(1, 1) + onnx.chunk(2, onnx.chunk(1, onnx.chunk(4, "serve")) + onnx.chunk(2, graph_def()))),
        ("Core ML", "made from", onnx.number(1, 4) + onnx.chunk(2, onnx.chunk(1, b"")) + onnx.chunk(500, b"")),
        ("script", "that it writes", b"#!/usr/bin/env python3\nimport torch\n"),
        ("Python program", "that it writes", b"import torch\nimport onnx\n"),
        ("program in the ingot language", ".ch", b'import "net.ch" as net\n'),
        ("Python program", "that it writes", b"from torch import nn\n"),
        ("Python program", "that it writes", b"# makes the net\nimport torch\n"),
        ("Python program", "that it writes", b'"""Makes the net."""\nimport torch\n'),
        ("ONNX tensor", "--input", onnx.number(1, 1) + onnx.number(2, 1) + onnx.chunk(9, bytes(4))),
    )


def contents(c):
    for i, (name, advice, data) in enumerate(foreign()):
        path = c.save(f"f{i}.onnx", data)
        for verb in ("inspect", "run", "compile"):
            got = c.run(verb, path, code=3, text=name)
            want(advice in got.text(), f"{name}: {got.text()}")
            want(got.text().count("\n") <= 1, f"{name}: more than one message: {got.text()}")


def broken(c):
    with open(MODEL, "rb") as f:
        model = f.read()
    c.run("inspect", c.save("empty.onnx", b""), code=4, text="is empty")
    for cut in (100, len(model) // 2, len(model) - 1):
        got = c.run("inspect", c.save("cut.onnx", model[:cut]), code=4, text=f"is truncated: it has {cut} bytes of at least ")
        want(cut < int(got.text().split()[-1]) <= len(model), got.text())
    c.run("inspect", c.save("net.tflite", struct.pack("<I", 28) + b"TFL3" + bytes(64)), code=4, text="not a well-formed FlatBuffer")
    c.run("inspect", c.save("notes.txt", b"a few words about a network, nothing else"), code=4, text="but text")
    c.run("run", c.save("few.txt", b"hello world\n"), code=4, text="but text")
    for _, _, data in foreign():  # only a byte order mark
        c.run("inspect", c.save("short", data[:6]), code=(3, 4))


def folders(c):
    for member, name, advice in (("saved_model.pb", "SavedModel", "--saved-model"), ("Manifest.json", "Core ML", "made from"),
                                 ("model.onnx", "folder with an ONNX model", "the file in it"), ("pytorch_model.bin", "Hugging Face", "optimum-cli")):
        folder = c.path("d_" + member)
        os.makedirs(folder)
        with open(os.path.join(folder, member), "wb") as f:
            f.write(b"x")
        want(advice in c.run("inspect", folder, code=3, text=name).text(), name)
    os.makedirs(c.path("nothing"))
    c.run("inspect", "nothing", code=(4, 5), text="directory")


def marks(c):
    """A UTF-8 byte order mark is ignored: programs, modules, tables, text forms, JSON."""
    def put(name, text):
        with open(c.path(name), "wb") as f:
            f.write(b"\xef\xbb\xbf" + text.encode())

    put("part.ch", "fn two() -> int { 2 }\n")
    put("x.csv", "1,2\n3,4\n")
    put("main.ch", 'import "part.ch" as part\nprint(part.two())\nprint(sum(load_data("x.csv")))\n')
    want(c.run("run", "main.ch").out == b"2\n10.0\n", "a program with a mark")
    put("bad.ch", "let x = y\n")
    want("bad.ch:1:9:" in c.run("check", "bad.ch", code=4).text(), "the place of an error")
    put("g.ing", 'graph g (%1 "x": f32[2]) {\n  %2 "y": f32[2] = neg(%1)\n  return %2 "y"\n}\n')
    c.run("run", "g.ing")
    put("tokenizer.json", '{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}}')
    want(c.run("tokenize", "tokenizer.json", "--text", "ba").out.split() == [b"1", b"0"], "a tokenizer with a mark")


CASES = (contents, broken, folders, marks)


def tests(env):
    return [Test(f"cli/formats/{fn.__name__}", lambda fn=fn: fn(Cli(env, "formats_" + fn.__name__)), cost=1) for fn in CASES]
