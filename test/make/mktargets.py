#!/usr/bin/env python3
"""Writes small networks that use every family of vector kernels, with inputs and the results of ONNX Runtime.

usage: mktargets.py FOLDER     writes FOLDER/NAME.onnx, FOLDER/NAME/input_0.pb, FOLDER/NAME/output_0.pb, FOLDER/NAME/largest
"""
import os
import sys

import ml_dtypes  # noqa: F401  (registers bfloat16 with numpy)
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import oracle

RNG = np.random.default_rng(5)


class Net:
    def __init__(self, shape):
        self.shape, self.nodes, self.weights = shape, [], []

    def weight(self, *shape, scale=0.3):
        return self.const((RNG.standard_normal(shape) * scale).astype(np.float32))

    def const(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def op(self, kind, *inputs, **attrs):
        out = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], **attrs))
        return out

    def conv(self, x, cin, cout, k, stride=1, group=1, pad=None, dilation=1):
        pad = dilation * (k // 2) if pad is None else pad
        return self.op("Conv", x, self.weight(cout, cin // group, k, k), self.weight(cout), kernel_shape=[k, k], group=group,
                       strides=[stride] * 2, pads=[pad] * 4, dilations=[dilation] * 2)

    def rounded(self, kind):
        """The same network with weights rounded to this type, as f32."""
        n = Net(self.shape)
        n.nodes = self.nodes
        for w in self.weights:
            a = numpy_helper.to_array(w)
            n.weights.append(numpy_helper.from_array(a.astype(kind).astype(a.dtype) if a.dtype == np.float32 else a, w.name))
        return n

    def model(self, y, kind=np.float32):
        """kind: type of input, result and weights; the sizes of Resize stay f32."""
        sizes = {i for n in self.nodes if n.op_type == "Resize" for i in n.input[1:]}
        code = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        weights = []
        for w in self.weights:
            a = numpy_helper.to_array(w)
            weights.append(numpy_helper.from_array(a.astype(kind), w.name) if a.dtype == np.float32 and w.name not in sizes else w)
        graph = helper.make_graph(self.nodes, "net", [helper.make_tensor_value_info("x", code, self.shape)],
                                  [helper.make_tensor_value_info(y, code, None)], weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)], ir_version=8)

    def save(self, path, y, kind=np.float32):
        """The reference computes in f32: ONNX Runtime lacks bf16, and casts f16 for most operators."""
        x = RNG.standard_normal(self.shape).astype(kind)
        got = oracle.session(self.rounded(kind).model(y).SerializeToString()).run(None, {"x": x.astype(np.float32)})[0]
        onnx.save(self.model(y, kind), path + ".onnx")
        os.makedirs(path, exist_ok=True)
        for file, array in (("input_0.pb", x), ("output_0.pb", got.astype(kind))):
            with open(os.path.join(path, file), "wb") as f:
                f.write(numpy_helper.from_array(array).SerializeToString())
        with open(os.path.join(path, "largest"), "w") as f:
            f.write(f"{float(np.abs(got).max()):g}")


def mobile(c):
    """Odd channel counts, depthwise, squeeze and excite, residual, concat, both poolings, a resize."""
    n = Net([1, 3, 21, 17])
    x = n.op("Relu", n.conv("x", 3, c, 3, stride=2))
    d = n.conv(x, c, c, 5, group=c)
    s = n.op("Sigmoid", n.conv(n.op("GlobalAveragePool", d), c, c, 1))
    e = n.op("Add", n.op("Mul", d, s), x)
    p = n.op("MaxPool", e, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    u = n.op("Resize", p, "", n.const(np.array([1, 1, 2, 2], np.float32)), mode="nearest", nearest_mode="floor",
             coordinate_transformation_mode="asymmetric")
    b = n.op("Resize", p, "", n.const(np.array([1, 1, 2, 2], np.float32)), mode="linear")
    j = n.op("Concat", u, b, axis=1)
    return n, n.op("HardSwish", n.conv(j, 2 * c, 20, 3, dilation=2))


def dense(c, side):
    """3x3 convolutions with enough channels for Winograd, and images that are not multiples of its patches."""
    n = Net([2, 8, side, side])
    x = n.op("Relu", n.conv("x", 8, c, 3))
    y = n.op("Relu", n.op("Add", n.conv(x, c, c, 3), x))
    return n, n.op("AveragePool", n.conv(y, c, c // 2, 3), kernel_shape=[2, 2], strides=[2, 2])


def narrow():
    """Channel groups that share a block or do not fit one; a row-major operand that fills blocks."""
    n = Net([1, 32, 13, 11])
    x = n.conv(n.op("Relu", n.conv("x", 32, 32, 3)), 32, 96, 1, pad=0)
    x = n.op("Add", n.op("HardSwish", n.conv(x, 96, 96, 3, group=12)), x)
    x = n.op("Relu", n.conv(x, 96, 48, 3, stride=2, group=4))
    return n, n.op("Concat", n.conv(x, 48, 24, 3, group=12), n.conv(x, 48, 48, 3, group=12), axis=1)


def grouped():
    n = Net([1, 32, 9, 9])
    return n, n.op("LeakyRelu", n.conv(n.conv("x", 32, 64, 1, pad=0), 64, 64, 3, group=4), alpha=0.1)


def dilated():
    """Windows nearly as large as the image, with and without stride; one that fits only in the middle."""
    n = Net([1, 20, 14, 11])
    x = n.conv("x", 20, 20, 1, pad=0)
    y = [n.conv(x, 20, 24, 3, dilation=d) for d in (6, 9, 24)]
    z = n.op("Relu", n.op("Add", n.op("Add", y[0], y[1]), y[2]))
    return n, n.conv(z, 24, 8, 3, dilation=8, stride=3, pad=7)


def cut():
    """Windows in which three taps read more than padding; transposed ones whose phases have three taps, with their epilogues."""
    n = Net([2, 16, 3, 3])
    x = n.conv("x", 16, 16, 1, pad=0)
    y = n.op("Conv", x, n.weight(16, 16, 5, 5), pads=[0, 0, 5, 5])
    z = n.op("Relu", n.op("ConvTranspose", y, n.weight(16, 24, 6, 6), n.weight(24), strides=[2, 2], pads=[2, 2, 2, 1]))
    return n, n.op("ConvTranspose", n.op("Sigmoid", z), n.weight(24, 1, 3, 4), strides=[2, 3], group=24, output_padding=[1, 0])


def few():
    """Convolutions with fewer results than a block: over blocks, over a concatenation that begins inside one, over long lines."""
    n = Net([1, 1, 7, 80])
    x = n.op("Relu", n.conv("x", 1, 16, 5))
    y = n.op("Sigmoid", n.conv(x, 16, 1, 3))
    z = n.conv(n.op("Concat", y, n.op("Relu", n.conv(x, 16, 16, 3)), axis=1), 17, 2, 3)
    return n, n.op("Conv", z, n.weight(1, 2, 3, 32), n.weight(1), strides=[1, 2])


def widened():
    """Channels appended after full and partial blocks, and in front; rows and columns appended too."""
    n = Net([1, 8, 9, 10])
    x = n.op("Relu", n.conv("x", 8, 16, 3))
    for cin, cout, pads in ((16, 20, (0, 4)), (20, 29, (0, 9)), (29, 32, (3, 0))):
        more = n.op("Pad", x, n.const(np.array([0, pads[0], 0, 0, 0, pads[1], 0, 0], np.int64)))
        x = n.op("Sigmoid", n.op("Add", n.conv(x, cin, cout, 1, pad=0), more))
    return n, n.conv(n.op("Pad", x, n.const(np.array([0, 0, 1, 2, 0, 5, 3, 0], np.int64))), 37, 8, 3)


def holes():
    """A window smaller than its stride: some results are empty sums."""
    n = Net([1, 8, 3, 40])
    return n, n.op("Relu", n.op("ConvTranspose", "x", n.weight(8, 3, 2, 2), n.weight(3), strides=[3, 3]))


def pools():
    """Row-major pools whose windows leave the image on each side; strides 1, 2 and 3; a large one, by lines; padded lines."""
    n = Net([1, 9, 13, 45])
    y = [n.op("MaxPool", "x", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
         n.op("MaxPool", "x", kernel_shape=[2, 5], strides=[2, 2], pads=[1, 2, 0, 2]),
         n.op("AveragePool", "x", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])]
    z = n.op("MaxPool", n.op("Add", n.op("Add", y[0], y[1]), y[2]), kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    z = n.op("Sub", z, n.op("MaxPool", z, kernel_shape=[5, 5], pads=[2, 2, 2, 2]))
    z = n.op("Resize", z, "", n.const(np.array([1, 1, 2, 2], np.float32)), mode="nearest", nearest_mode="floor",
             coordinate_transformation_mode="asymmetric")
    return n, n.op("AveragePool", z, kernel_shape=[2, 3], strides=[1, 3], pads=[0, 1, 0, 0])


def extremes():
    """ArgMax along contiguous and other axes, among many equal elements; cumsum along other axes."""
    n = Net([6, 37, 83])
    x = n.op("Round", n.op("Mul", "x", n.const(np.float32(3))))
    y = [n.op("ArgMax", x, axis=1, keepdims=0), n.op("ArgMin", x, axis=2, keepdims=0, select_last_index=1), n.op("ArgMax", x, axis=2, keepdims=0),
         n.op("ArgMin", x, axis=1, keepdims=0, select_last_index=1)]
    sums = n.op("Add", n.op("CumSum", x, n.const(np.array(1)), reverse=1), n.op("CumSum", x, n.const(np.array(0)), exclusive=1))
    return n, n.op("Concat", n.op("Cast", n.op("Concat", *y, axis=1), to=1), n.op("Reshape", sums, n.const(np.array([6, 37 * 83]))), axis=1)


def tied():
    """One weight that is read as it is, transposed, and by a convolution transposed."""
    n = Net([24, 64])
    w, k = n.weight(64, 64), n.weight(64, 64, 1, 1)
    y = n.op("Gemm", n.op("Relu", n.op("MatMul", "x", w)), w, transB=1)
    z = n.op("Reshape", y, n.const(np.array([1, 64, 24, 1])))
    return n, n.op("ConvTranspose", n.op("Relu", n.op("Conv", z, k)), k)


def quantised(c):
    """int8 convolutions whose channels fill no block, one of them depthwise."""
    n = Net([1, c, 9, 9])

    def pair(x, scale, zero, kind):
        given = [n.const(np.float32(scale)), n.const(np.array(zero, kind))]
        return n.op("DequantizeLinear", n.op("QuantizeLinear", x, *given), *given)

    def step(x, cin, cout, k, group=1):
        w = n.op("DequantizeLinear", n.const(RNG.integers(-127, 128, (cout, cin // group, k, k)).astype(np.int8)),
                 n.const(np.float32(0.01)), n.const(np.int8(0)))
        y = n.op("Conv", x, w, n.weight(cout), kernel_shape=[k, k], pads=[k // 2] * 4, group=group)
        return pair(n.op("Relu", y), 0.07, 0, np.uint8)

    x = pair("x", 0.03, 117, np.uint8)
    return n, step(step(step(x, c, c, 3), c, c, 3, group=c), c, c + 2, 1)


def multiplied(c):
    """Depthwise convolutions with two and three results per channel: of slices of the input, and chained. Groups of three, four
    and more that fill no vectors."""
    n = Net([1, 3 * c, 11, 9])
    parts = [n.op("Slice", "x", *(n.const(np.array([k])) for k in (at, at + c, 1))) for at in (0, c, 2 * c)]
    y = [n.conv(parts[0], c, 2 * c, 3, group=c), n.conv(parts[1], c, 2 * c, 5, group=c), n.conv(n.conv(parts[2], c, c, 7, group=c), c, 2 * c, 3, group=c)]
    z = n.conv(n.op("Relu", n.op("Add", n.op("Add", y[0], y[1]), y[2])), 2 * c, 6 * c, 7, stride=2, group=2 * c)
    z = n.op("Relu", n.conv(n.op("Sigmoid", n.conv(z, 6 * c, 9 * c // 2, 3, group=3 * c // 2)), 9 * c // 2, 3 * c, 3, group=3 * c // 2, stride=2))
    return n, n.conv(n.op("Relu", n.conv(z, 3 * c, 6 * c, 3, group=3)), 6 * c, 9 * c, 3, group=2)


def attention(tokens, width, heads):
    n = Net([1, tokens, width])
    part = n.const(np.array([1, tokens, heads, width // heads]))

    def head(perm):
        y = n.op("Add", n.op("MatMul", "x", n.weight(width, width)), n.weight(width))
        return n.op("Transpose", n.op("Reshape", y, part), perm=perm)

    q, k, v = head([0, 2, 1, 3]), head([0, 2, 3, 1]), head([0, 2, 1, 3])
    a = n.op("MatMul", n.op("Softmax", n.op("Mul", n.op("MatMul", q, k), n.const(np.float32(0.4))), axis=-1), v)
    y = n.op("Reshape", n.op("Transpose", a, perm=[0, 2, 1, 3]), n.const(np.array([1, tokens, width])))
    y = n.op("LayerNormalization", n.op("Add", y, "x"), n.weight(width), n.weight(width), axis=-1)
    h = n.op("MatMul", y, n.weight(width, 3 * width))
    g = n.op("Mul", h, n.op("Add", n.op("Erf", n.op("Mul", h, n.const(np.float32(0.7071)))), n.const(np.float32(1))))
    return n, n.op("MatMul", g, n.weight(3 * width, 7))


def forest(rows, trees, leaves):
    """Trees with random splits: paths of many lengths, rows and trees that do not fill the last lanes."""
    n, rng = Net([rows, 6]), np.random.default_rng(6)
    keys = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids", "missing_value_tracks_true")
    table, said = [], []
    for t in range(trees):
        nodes, ends = [[0, 0.0, "LEAF", 0, 0]], [0]
        while len(ends) < leaves:
            at = ends.pop(int(rng.integers(len(ends))))
            nodes[at] = [int(rng.integers(6)), float(np.float32(rng.standard_normal())), "BRANCH_LEQ", len(nodes), len(nodes) + 1]
            ends += [len(nodes), len(nodes) + 1]
            nodes += [[0, 0.0, "LEAF", 0, 0], [0, 0.0, "LEAF", 0, 0]]
        table += [[t, i, *node, int(rng.integers(2))] for i, node in enumerate(nodes)]
        said += [(t, end, 0, float(np.float32(rng.standard_normal()))) for end in ends]
    attrs = {f"nodes_{k}": list(v) for k, v in zip(keys, zip(*table))}
    attrs |= {f"target_{k}": list(v) for k, v in zip(("treeids", "nodeids", "ids", "weights"), zip(*said))}
    return n, n.op("TreeEnsembleRegressor", "x", domain="ai.onnx.ml", n_targets=1, **attrs)


def main():
    nets = {"mobile24": mobile(24), "mobile21": mobile(21), "dense32": dense(32, 13), "dense272": dense(272, 7),
            "grouped": grouped(), "narrow": narrow(), "dilated": dilated(), "cut": cut(), "few": few(), "holes": holes(), "widened": widened(),
            "pools": pools(), "extremes": extremes(), "tied": tied(), "bytes19": quantised(19), "attention": attention(37, 24, 3), "forest": forest(29, 31, 40),
            "multiplied": multiplied(10)}
    os.makedirs(sys.argv[1], exist_ok=True)
    for name, (net, y) in nets.items():
        net.save(os.path.join(sys.argv[1], name), y)
    for name, kind in (("mobile21", "float16"), ("attention", "float16"), ("attention", "bfloat16"), ("pools", "bfloat16")):
        net, y = nets[name]
        net.save(os.path.join(sys.argv[1], f"{name}-{kind}"), y, np.dtype(kind))


if __name__ == "__main__":
    main()
