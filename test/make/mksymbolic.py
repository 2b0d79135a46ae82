"""Writes models with symbolic dimensions, with inputs of several sizes: mksymbolic.py OUT writes OUT/NAME/model.onnx,
OUT/NAME/SIZE/{inputs,expected}.npz and OUT/cases.json.

Runs with the Python of build/venv.
Weights and inputs come from fixed seeds; ONNX Runtime computes the expected outputs for each size.
"""
import json
import os
import shutil
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

import oracle

F, I, B = T.FLOAT, T.INT64, T.BOOL


class Net:
    """A graph under construction: op() appends a node and returns the name of its first result."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.inits, self.count = [], [], 0

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def const(self, a):
        name = self.name()
        self.inits.append(numpy_helper.from_array(np.asarray(a), name))
        return name

    def ints(self, *a):
        return self.const(np.array(a, np.int64))

    def weight(self, *shape, scale=None):
        n = np.prod(shape[1:]) if len(shape) > 1 else 1
        return self.const((self.rng.standard_normal(shape) * (scale or 1 / np.sqrt(max(n, 1)))).astype(np.float32))

    def op(self, kind, *inputs, outputs=1, **attrs):
        names = [self.name() for _ in range(outputs)]
        self.nodes.append(h.make_node(kind, list(inputs), names, **attrs))
        return names[0] if outputs == 1 else names

    def extent(self, x, axis):
        """Returns a dimension of x as int64[1], as exporters compute it."""
        scalar = self.op("Gather", self.op("Shape", x), self.const(np.int64(axis)), axis=0)
        return self.op("Unsqueeze", scalar, self.ints(0))

    def model(self, inputs, outputs, opset=17):
        """inputs: {name: (type, shape)}; outputs: {name: (type, inner name)}"""
        for name, (_, inner) in outputs.items():
            self.nodes.append(h.make_node("Identity", [inner], [name]))
        g = h.make_graph(self.nodes, "net", [h.make_tensor_value_info(n, k, s) for n, (k, s) in inputs.items()],
                         [h.make_tensor_value_info(n, k, None) for n, (k, _) in outputs.items()], self.inits)
        return h.make_model(g, ir_version=8, opset_imports=[h.make_opsetid("", opset)])


def norm(n, x, width):
    mean = n.op("ReduceMean", x, axes=[-1])
    d = n.op("Sub", x, mean)
    var = n.op("ReduceMean", n.op("Mul", d, d), axes=[-1])
    y = n.op("Div", d, n.op("Sqrt", n.op("Add", var, n.const(np.float32(1e-5)))))
    return n.op("Add", n.op("Mul", y, n.const(np.float32(1) + 0 * np.arange(width, dtype=np.float32))), n.weight(width))


def attention(n, x, mask, width, heads):
    def split(y):
        to = n.op("Concat", n.extent(y, 0), n.extent(y, 1), n.ints(heads), n.ints(width // heads), axis=0)
        return n.op("Transpose", n.op("Reshape", y, to), perm=[0, 2, 1, 3])
    q, k, v = (split(n.op("Add", n.op("MatMul", x, n.weight(width, width)), n.weight(width))) for _ in range(3))
    s = n.op("MatMul", q, n.op("Transpose", k, perm=[0, 1, 3, 2]))
    s = n.op("Add", n.op("Div", s, n.const(np.float32(np.sqrt(width // heads)))), mask)
    y = n.op("Transpose", n.op("MatMul", n.op("Softmax", s, axis=-1), v), perm=[0, 2, 1, 3])
    to = n.op("Concat", n.extent(y, 0), n.extent(y, 1), n.ints(width), axis=0)
    return n.op("MatMul", n.op("Reshape", y, to), n.weight(width, width))


def gelu(n, x):
    half = n.op("Mul", x, n.const(np.float32(0.5)))
    e = n.op("Erf", n.op("Div", x, n.const(np.float32(np.sqrt(2)))))
    return n.op("Mul", half, n.op("Add", e, n.const(np.float32(1))))


def bert():
    width, words, longest = 16, 30, 12
    n = Net(1)
    seq = n.extent("ids", 1)
    place = n.op("Slice", n.weight(longest, width, scale=0.5), n.ints(0), seq, n.ints(0))
    x = norm(n, n.op("Add", n.op("Gather", n.weight(words, width, scale=0.5), "ids", axis=0), place), width)
    mask = n.op("Cast", n.op("Unsqueeze", "mask", n.ints(1, 2)), to=F)
    mask = n.op("Mul", n.op("Sub", n.const(np.float32(1)), mask), n.const(np.float32(-1e4)))
    for _ in range(2):
        x = norm(n, n.op("Add", x, attention(n, x, mask, width, 2)), width)
        y = gelu(n, n.op("Add", n.op("MatMul", x, n.weight(width, 32)), n.weight(32)))
        x = norm(n, n.op("Add", x, n.op("MatMul", y, n.weight(32, width))), width)
    first = n.op("Gather", x, n.const(np.int64(0)), axis=1)
    pooled = n.op("Tanh", n.op("Gemm", first, n.weight(width, width), n.weight(width), transB=1))
    m = n.model({"ids": (I, ["batch", "seq"]), "mask": (I, ["batch", "seq"])}, {"states": (F, x), "pooled": (F, pooled)})

    def data(rng, batch, seq):
        lengths = rng.integers(1, seq + 1, (batch, 1))
        return {"ids": rng.integers(0, words, (batch, seq)), "mask": (np.arange(seq) < lengths).astype(np.int64)}
    return m, data, {"ids": (3, longest), "mask": (3, longest)}, [(1, 5), (2, 12), (3, 1), (3, 12), (1, 1)]


def conv():
    n = Net(2)
    scale, shift, mean, var = (n.const(np.abs(n.rng.standard_normal(8)).astype(np.float32) + 0.5) for _ in range(4))
    x = n.op("Conv", "image", n.weight(8, 3, 3, 3, scale=0.2), n.weight(8), strides=[2, 2], pads=[1, 1, 1, 1])
    x = n.op("Relu", n.op("BatchNormalization", x, scale, shift, mean, var))
    d = n.op("Conv", x, n.weight(8, 1, 3, 3, scale=0.3), group=8, auto_pad="SAME_UPPER")
    x = n.op("Add", x, n.op("HardSwish", n.op("Conv", d, n.weight(8, 8, 1, 1))))
    p = n.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    a = n.op("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
    p = n.op("Concat", p, a, axis=1)
    up = n.op("Resize", p, "", n.const(np.array([1, 1, 2, 2], np.float32)), mode="nearest", nearest_mode="floor",
              coordinate_transformation_mode="asymmetric")
    padded = n.op("Pad", up, n.ints(0, 0, 1, 0, 0, 0, 0, 2), n.const(np.float32(0.5)), mode="constant")
    pooled = n.op("Flatten", n.op("GlobalAveragePool", padded))
    logits = n.op("Softmax", n.op("Gemm", pooled, n.weight(10, 16), n.weight(10), transB=1))
    m = n.model({"image": (F, ["batch", 3, "height", "width"])}, {"map": (F, padded), "logits": (F, logits)})

    def data(rng, batch, height, width):
        return {"image": rng.standard_normal((batch, 3, height, width)).astype(np.float32)}
    return m, data, {"image": (3, 3, 17, 14)}, [(1, 8, 8), (2, 17, 14), (3, 9, 6), (1, 4, 13)]


def images():
    """Only the batch size is symbolic, so kernels are those of a fixed size: blocks, borders, Winograd, depthwise, rows."""
    n = Net(5)
    x = n.op("Relu", n.op("Conv", "image", n.weight(32, 3, 3, 3, scale=0.2), n.weight(32), strides=[2, 2], pads=[1, 1, 1, 1]))
    y = n.op("Relu", n.op("Conv", x, n.weight(32, 32, 3, 3, scale=0.06), n.weight(32), pads=[1, 1, 1, 1]))
    d = n.op("HardSwish", n.op("Conv", y, n.weight(32, 1, 5, 5, scale=0.2), group=32, pads=[2, 2, 2, 2]))
    s = n.op("Sigmoid", n.op("Conv", n.op("GlobalAveragePool", d), n.weight(32, 32, 1, 1, scale=0.2)))
    x = n.op("Add", x, n.op("Conv", n.op("Mul", d, s), n.weight(32, 32, 1, 1, scale=0.2), n.weight(32)))
    p = n.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    p = n.op("Concat", p, n.op("Conv", p, n.weight(40, 32, 1, 1, scale=0.2)), axis=1)
    t = n.op("ConvTranspose", p, n.weight(72, 16, 2, 2, scale=0.1), strides=[2, 2])
    logits = n.op("Gemm", n.op("Flatten", n.op("GlobalAveragePool", p)), n.weight(10, 72), n.weight(10), transB=1)
    m = n.model({"image": (F, ["batch", 3, 22, 26])}, {"map": (F, t), "logits": (F, logits)})

    def data(rng, batch):
        return {"image": rng.standard_normal((batch, 3, 22, 26)).astype(np.float32)}
    return m, data, {"image": (7, 3, 22, 26)}, [(1,), (6,), (7,)]


def recurrent():
    width, cells = 5, 4
    n = Net(3)
    y, yh, yc = n.op("LSTM", "x", n.weight(2, 4 * cells, width), n.weight(2, 4 * cells, cells), n.weight(2, 8 * cells),
                     outputs=3, hidden_size=cells, direction="bidirectional")
    z = n.op("Reshape", n.op("Transpose", y, perm=[0, 2, 1, 3]), n.ints(0, 0, -1))
    g, gh = n.op("GRU", z, n.weight(1, 3 * cells, 2 * cells), n.weight(1, 3 * cells, cells), n.weight(1, 6 * cells), outputs=2,
                 hidden_size=cells, linear_before_reset=1, direction="reverse")
    last = n.op("Slice", n.op("Squeeze", g, n.ints(1)), n.ints(-1), n.ints(np.iinfo(np.int64).max), n.ints(0))
    out = n.op("MatMul", last, n.weight(cells, 3))
    m = n.model({"x": (F, ["seq", "batch", width])},
                {"all": (F, y), "hidden": (F, yh), "cell": (F, yc), "gru": (F, gh), "out": (F, out)})

    def data(rng, seq, batch):
        return {"x": rng.standard_normal((seq, batch, width)).astype(np.float32)}
    return m, data, {"x": (9, 3, width)}, [(1, 1), (9, 3), (4, 2), (9, 1)]


def shapes():
    """Nodes whose results depend on extents in many ways."""
    n = Net(4)
    rows, cols = n.extent("x", 0), n.extent("x", 1)
    flat = n.op("Reshape", "x", n.ints(-1))
    twice = n.op("Concat", "x", n.op("Neg", "x"), "x", axis=0)
    tail = n.op("Slice", twice, n.ints(-2, 1), n.ints(1 << 40, 1 << 40), n.ints(0, 1))
    back = n.op("Slice", "x", n.ints(-1), n.ints(np.iinfo(np.int64).min), n.ints(1), n.ints(-1))
    tiled = n.op("Tile", "x", n.op("Concat", n.ints(2), n.ints(3), axis=0))
    wide = n.op("Expand", n.op("Unsqueeze", "x", n.ints(1)), n.op("Concat", rows, n.ints(2), cols, axis=0))
    zero = n.const(np.int64(0))
    count = n.op("Range", zero, n.op("Squeeze", cols, n.ints(0)), n.const(np.int64(1)))
    end = n.op("Mul", n.op("Squeeze", cols, n.ints(0)), n.const(np.int64(2)))
    around = n.op("Range", n.op("Neg", end), end, n.const(np.int64(3)))
    ones = n.op("ConstantOfShape", n.op("Concat", cols, cols, axis=0), value=numpy_helper.from_array(np.ones(1, np.float32)))
    causal = n.op("Trilu", ones, upper=0)
    mixed = n.op("MatMul", "x", causal)
    sums = n.op("CumSum", "x", n.const(np.int64(1)), exclusive=1, reverse=1)
    best, where = n.op("TopK", "x", n.ints(2), outputs=2, axis=1)
    arg = n.op("ArgMax", "x", axis=0, keepdims=0)
    mean = n.op("ReduceMean", "x", axes=[0], keepdims=0)
    total = n.op("Cast", n.op("Mul", rows, cols), to=F)
    scaled = n.op("Div", n.op("ReduceSum", flat, keepdims=1), total)
    picked = n.op("Where", n.op("Greater", "x", n.const(np.float32(0))), "x", n.op("Transpose", n.op("Transpose", mean)))
    padded = n.op("Pad", "x", n.ints(1, 0, 0, 2), mode="edge")
    nonzero = n.op("NonZero", n.op("Relu", "x"))
    names = {"flat": flat, "tail": tail, "back": back, "tiled": tiled, "wide": wide, "mixed": mixed, "sums": sums, "best": best,
             "mean": mean, "scaled": scaled, "picked": picked, "padded": padded}
    whole = {"count": count, "around": around, "where": where, "arg": arg, "nonzero": nonzero}
    m = n.model({"x": (F, ["rows", "cols"])}, {**{k: (F, v) for k, v in names.items()}, **{k: (I, v) for k, v in whole.items()}})

    def data(rng, rows, cols):
        return {"x": rng.standard_normal((rows, cols)).astype(np.float32)}
    return m, data, {"x": (5, 7)}, [(1, 2), (5, 7), (4, 3), (2, 7)]


def graph_layers(attention):
    """Two graph convolution layers, as PyTorch Geometric writes scatter without dim_size: the result has max(index) + 1 rows.
    Attention reads a row for each index, so the number of rows bounds the index; the other kind does not."""
    width, n = 4, Net(5)
    x, zero, least = "x", n.const(np.zeros(1, np.float32)), n.const(np.array([-1e30], np.float32))

    def scatter(values, index, start, how, columns):
        rows = n.op("Reshape", n.op("Add", n.op("ReduceMax", index, keepdims=0), n.const(np.int64(1))), n.ints(-1))
        first.append(rows)
        shape = n.op("Concat", rows, n.ints(columns), axis=0) if columns else rows
        if columns:
            index = n.op("Expand", n.op("Unsqueeze", index, n.ints(1)), n.op("Shape", values))
        return n.op("ScatterElements", n.op("Expand", start, shape), index, values, axis=0, reduction=how)

    first = []
    for _ in range(2):
        source, target = (n.op("Gather", "edges", n.const(np.int64(k)), axis=0) for k in (0, 1))
        y = n.op("MatMul", x, n.weight(width, width))
        if attention:
            s, t = (n.op("Squeeze", n.op("MatMul", y, n.weight(width, 1)), n.ints(1)) for _ in range(2))
            a = n.op("LeakyRelu", n.op("Add", n.op("Gather", s, source, axis=0), n.op("Gather", t, target, axis=0)))
            most = n.op("Gather", scatter(a, target, least, "max", 0), target, axis=0)
            a = n.op("Exp", n.op("Sub", a, most))
            a = n.op("Div", a, n.op("Gather", scatter(a, target, zero, "add", 0), target, axis=0))
        else:
            ones = n.op("Expand", n.const(np.ones(1, np.float32)), n.op("Shape", target))
            a = n.op("Reciprocal", n.op("Gather", scatter(ones, target, zero, "add", 0), target, axis=0))
        y = n.op("Mul", n.op("Gather", y, source, axis=0), n.op("Unsqueeze", a, n.ints(1)))
        x = n.op("Tanh", scatter(y, target, zero, "add", width))
    m = n.model({"x": (F, ["nodes", width]), "edges": (I, [2, "count"])}, {"y": (F, x)}, 18)

    def data(rng, nodes, count):
        edges = rng.integers(0, nodes, (2, count))
        edges[1, 0] = edges.max()  # the second layer has as many rows as the first reads
        return {"x": rng.standard_normal((nodes, width)).astype(np.float32), "edges": edges}
    return m, data, {"x": (9, width), "edges": (2, 30), **({} if attention else {first[0]: (9,)})}, [(9, 30), (5, 8), (1, 1), (7, 30)]


def graph_attention():
    return graph_layers(True)


def graph_convolution():
    return graph_layers(False)


def main():
    out = sys.argv[1]
    shutil.rmtree(out, ignore_errors=True)
    cases = []
    for build in (bert, conv, images, recurrent, shapes, graph_attention, graph_convolution):
        m, data, bound, sizes = build()
        folder = os.path.join(out, build.__name__)
        os.makedirs(folder)
        onnx.save(m, os.path.join(folder, "model.onnx"))
        session = oracle.session(m.SerializeToString())
        names = [o.name for o in session.get_outputs()]
        for size in sizes:
            given = data(np.random.default_rng(7), *size)
            at = os.path.join(folder, "x".join(map(str, size)))
            os.makedirs(at)
            np.savez(os.path.join(at, "inputs.npz"), **given)
            np.savez(os.path.join(at, "expected.npz"), **dict(zip(names, session.run(None, given))))
            cases.append({"name": f"{build.__name__}-{os.path.basename(at)}", "model": os.path.join(folder, "model.onnx"), "data": at,
                          "bounds": [f"{k}{':' if k in given else '='}{'x'.join(map(str, v))}" for k, v in bound.items()],
                          "first": size == sizes[1], "late": build.__name__.startswith("graph_")})
    with open(os.path.join(out, "cases.json"), "w", encoding="ascii") as f:
        json.dump(cases, f, indent=1)
    print(len(cases), "cases")


if __name__ == "__main__":
    main()
