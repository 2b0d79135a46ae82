#!/usr/bin/env python3
"""Writes quantized networks of all kinds and sizes, with inputs and the results of ONNX Runtime.

usage: mkbytes.py FOLDER     writes FOLDER/NAME.onnx, FOLDER/NAME/input_0.pb, FOLDER/NAME/output_0.pb

Every network multiplies extreme values (0 and 255, -128 and 127), so that a saturating intermediate sum shows.
"""
import os
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper

import oracle

U8, I8 = np.uint8, np.int8


class Net:
    def __init__(self, seed, shape, kind):
        self.rng = np.random.default_rng(seed)
        self.shape, self.kind, self.nodes, self.weights = shape, np.dtype(kind), [], []

    def const(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def bytes(self, shape, kind):
        """Returns random values, a quarter of them at the ends of the range."""
        lo, hi = (0, 255) if kind == U8 else (-128, 127)
        a = self.rng.integers(lo, hi + 1, shape)
        ends = self.rng.integers(0, 8, shape)
        return np.where(ends == 0, lo, np.where(ends == 1, hi, a)).astype(kind)

    def op(self, kind, *inputs, domain="", **attrs):
        out = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], domain=domain, **attrs))
        return out

    def scale(self, *shape, near=0.02):
        return self.const((self.rng.uniform(0.5, 1.5, shape) * near).astype(np.float32))

    def qconv(self, x, xkind, zero, cin, cout, k, stride=1, group=1, pad=0, dilation=1, wkind=I8, wzero=0, bias=True):
        terms = cin // group * k * k
        b = [self.const(self.rng.integers(-9000, 9000, cout).astype(np.int32))] if bias else []
        return self.op("QLinearConv", x, self.scale(), self.const(xkind(zero)), self.const(self.bytes((cout, cin // group, k, k), wkind)),
                       self.scale(cout), self.const(np.full(cout, wzero, wkind)), self.scale(near=0.02 * 75 * terms ** 0.5 * 0.04),
                       self.const(xkind(100 if xkind == U8 else -7)), *b, kernel_shape=[k, k], strides=[stride] * 2, group=group,
                       pads=[pad] * 4, dilations=[dilation] * 2)

    # the QDQ form: each operand is dequantized and each result quantized
    def dq(self, x, scale, zero, **attrs):
        return self.op("DequantizeLinear", x, scale, zero, **attrs)

    def pair(self, x, near=0.05, kind=U8, zero=120):
        s, z = self.scale(near=near), self.const(kind(zero))
        return self.dq(self.op("QuantizeLinear", x, s, z), s, z)

    def conv(self, x, xs, cin, cout, k, stride=1, group=1, pad=None):
        ws = (self.rng.uniform(0.5, 1.5, cout) * 0.01).astype(np.float32)
        w = self.dq(self.const(self.bytes((cout, cin // group, k, k), I8)), self.const(ws), self.const(np.zeros(cout, I8)), axis=0)
        b = self.dq(self.const(self.rng.integers(-9000, 9000, cout).astype(np.int32)), self.const(np.float32(xs) * ws),
                    self.const(np.zeros(cout, np.int32)), axis=0)
        pad = k // 2 if pad is None else pad
        return self.op("Conv", x, w, b, kernel_shape=[k, k], group=group, strides=[stride] * 2, pads=[pad] * 4)

    def save(self, path, y):
        value = helper.make_tensor_value_info
        graph = helper.make_graph(self.nodes, "net", [value("x", helper.np_dtype_to_tensor_dtype(self.kind), self.shape)],
                                  [helper.make_empty_tensor_value_info(y)], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=8)
        onnx.save(model, path + ".onnx")
        x = self.rng.standard_normal(self.shape).astype(np.float32) if self.kind == np.float32 else self.bytes(self.shape, self.kind.type)
        got = oracle.session(path + ".onnx").run(None, {"x": x})[0]
        os.makedirs(path, exist_ok=True)
        for file, array in (("input_0.pb", x), ("output_0.pb", got)):
            with open(os.path.join(path, file), "wb") as f:
                f.write(numpy_helper.from_array(array).SerializeToString())


def pointwise(seed, cin, cout, kind=U8, **more):
    n = Net(seed, [1, cin, 5, 7], kind)
    x = n.qconv("x", kind, 131 if kind == U8 else 5, cin, cout, 1, **more)
    return n, n.qconv(x, kind, 100 if kind == U8 else -7, cout, cin, 1)


def windows(seed, cin, cout, k, kind=U8, **more):
    n = Net(seed, [2, cin, 11, 9], kind)
    x = n.qconv("x", kind, 3 if kind == U8 else -100, cin, cout, k, pad=k // 2, **more)
    return n, n.qconv(x, kind, 100 if kind == U8 else -7, cout, 9, 3, pad=1, stride=2, bias=False)


def depthwise(seed, c, k, kind=U8, **more):
    n = Net(seed, [1, c, 10, 12], kind)
    x = n.qconv("x", kind, 17, c, c, k, pad=k // 2, group=c, **more)
    return n, n.qconv(x, kind, 100 if kind == U8 else -7, c, c, 3, pad=1, group=c, stride=2)


def multiplied(seed, c, kind=U8):
    """Depthwise convolutions with two results per channel, then three."""
    n = Net(seed, [1, c, 10, 12], kind)
    x = n.qconv("x", kind, 17, c, 2 * c, 5, pad=2, group=c)
    return n, n.qconv(x, kind, 100 if kind == U8 else -7, 2 * c, 6 * c, 3, pad=1, group=2 * c, stride=2)


def grouped(seed):
    n = Net(seed, [1, 32, 6, 6], U8)
    return n, n.qconv("x", U8, 9, 32, 32, 3, pad=1, group=2)


def narrow(seed, kind=U8):
    n = Net(seed, [1, 24, 9, 7], kind)
    x = n.qconv("x", kind, 9, 24, 48, 3, pad=1, group=6)
    return n, n.qconv(x, kind, 100 if kind == U8 else -7, 48, 36, 3, pad=1, group=3, stride=2)


def products(seed, m, k, n_, kind=U8, wkind=I8, op="QLinearMatMul"):
    n = Net(seed, [m, k], kind)
    w, zero, wzero = n.const(n.bytes((k, n_), wkind)), n.const(kind(7)), n.const(wkind(0 if wkind == I8 else 128))
    if op == "MatMulInteger":
        return n, n.op(op, "x", w, zero, wzero)
    if op == "QGemm":
        bias = n.const(n.rng.integers(-9000, 9000, n_).astype(np.int32))
        return n, n.op(op, "x", n.scale(), zero, w, n.scale(n_), n.const(np.full(n_, 0 if wkind == I8 else 128, wkind)), bias,
                       n.scale(near=0.06 * k ** 0.5), n.const(kind(60)), domain="com.microsoft", transB=0)
    return n, n.op(op, "x", n.scale(), zero, w, n.scale(), wzero, n.scale(near=0.06 * k ** 0.5), n.const(kind(60)))


def integer(seed, kind=U8):
    n = Net(seed, [1, 20, 8, 8], kind)
    return n, n.op("ConvInteger", "x", n.const(n.bytes((24, 20, 3, 3), I8)), n.const(kind(40)), pads=[1, 1, 1, 1], kernel_shape=[3, 3])


def patches(seed, cin, cout, kind=U8, wkind=I8, zero=0, wzero=0, dynamic=False):
    """3x3 with stride 1; some channels have only extreme weights; dynamic: the zero point is computed."""
    n = Net(seed, [1, cin, 14, 11], kind)
    w = n.bytes((cout, cin, 3, 3), wkind)
    w[0], w[1] = np.iinfo(wkind).min, np.iinfo(wkind).max
    z = n.op("ReduceMax", "x", keepdims=0) if dynamic else n.const(kind(zero))
    return n, n.op("ConvInteger", "x", n.const(w), z, n.const(wkind(wzero)), pads=[1, 1, 1, 1], kernel_shape=[3, 3])


def pairs(seed, c, relu):
    """A small residual network as a quantizer writes it."""
    n = Net(seed, [1, 3, 22, 18], np.float32)
    zero = 120
    s0 = np.float32(0.03)
    x = n.dq(n.op("QuantizeLinear", "x", n.const(s0), n.const(U8(zero))), n.const(s0), n.const(U8(zero)))

    def step(x, xs, cin, cout, k, last=True, **more):
        y = n.conv(x, xs, cin, cout, k, **more)
        if relu and last:
            y = n.op("Relu", y)
        s = np.float32(n.rng.uniform(0.5, 1.5) * 0.3 * xs * (cin // more.get("group", 1) * k * k) ** 0.5)
        z = n.const(U8(0 if relu and last else zero))
        q = n.op("QuantizeLinear", y, n.const(s), z)
        return n.dq(q, n.const(s), z), s

    a, sa = step(x, s0, 3, c, 3, stride=2)
    p = n.op("MaxPool", a, kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1])
    z = n.const(U8(0 if relu else zero))
    p = n.dq(n.op("QuantizeLinear", p, n.const(sa), z), n.const(sa), z)
    b, sb = step(p, sa, c, 2 * c, 1)
    d, sd = step(b, sb, 2 * c, 2 * c, 3, group=2 * c)
    e, se = step(d, sd, 2 * c, c, 1, last=False)
    y = n.op("Add", p, e)
    if relu:
        y = n.op("Relu", y)
    y = n.pair(y, near=float(sa + se) * 0.7)
    g = n.pair(n.op("GlobalAveragePool", y), near=float(sa))
    f = n.op("Flatten", g)
    w = n.dq(n.const(n.bytes((10, c), I8)), n.scale(10), n.const(np.zeros(10, I8)), axis=0)
    return n, n.op("Gemm", f, w, n.const(n.rng.standard_normal(10).astype(np.float32)), transB=1)


def activations(seed, kind=U8):
    """x * sigmoid(x) in int8, between convolutions."""
    n = Net(seed, [1, 16, 7, 9], kind)
    zero, one = n.const(kind(100 if kind == U8 else -7)), n.const(np.float32(0.04))
    a = n.qconv("x", kind, 9, 16, 24, 1)
    half, low = n.const(np.float32(1 / 255)), n.const(kind(0 if kind == U8 else -128))
    s = n.op("QLinearSigmoid", a, one, zero, half, low, domain="com.microsoft")
    y = n.op("QLinearMul", a, one, zero, s, half, low, n.const(np.float32(0.03)), n.const(kind(7)), domain="com.microsoft")
    return n, n.qconv(y, kind, 7, 24, 16, 3, pad=1)


def nets():
    yield "pointwise16", pointwise(1, 16, 32)
    yield "pointwise27", pointwise(2, 27, 21)
    yield "pointwise-signed", pointwise(3, 32, 48, I8)
    yield "pointwise-u8u8", pointwise(4, 24, 20, wkind=U8, wzero=128)
    yield "pointwise-wide", pointwise(5, 40, 20, wkind=U8, wzero=3)
    yield "windows3", windows(6, 3, 16, 3)
    yield "windows3-stride", windows(7, 3, 20, 3, stride=2)
    yield "windows7", windows(8, 3, 24, 7, stride=2)
    yield "windows32", windows(9, 32, 32, 3)
    yield "windows18-signed", windows(10, 18, 33, 3, I8)
    yield "windows-dilated", windows(11, 16, 16, 3, dilation=2)
    yield "windows1", windows(12, 1, 5, 5)
    yield "depthwise32", depthwise(13, 32, 3)
    yield "depthwise19", depthwise(14, 19, 5)
    yield "depthwise-signed", depthwise(15, 24, 3, I8)
    yield "grouped", grouped(16)
    yield "matmul", products(17, 9, 64, 40)
    yield "matmul-odd", products(18, 7, 37, 19)
    yield "matmul-row", products(19, 1, 128, 100)
    yield "matmul-signed", products(20, 5, 32, 32, I8)
    yield "matmul-u8u8", products(21, 5, 36, 17, wkind=U8)
    yield "matmulinteger", products(22, 6, 300, 33, op="MatMulInteger")
    yield "matmulinteger-signed", products(23, 6, 301, 33, I8, op="MatMulInteger")
    yield "qgemm", products(24, 6, 48, 24, op="QGemm")
    yield "convinteger", integer(25)
    yield "convinteger-signed", integer(26, I8)
    yield "pairs16", pairs(27, 16, True)
    yield "pairs12", pairs(28, 12, False)
    yield "patches24", patches(31, 24, 32)
    yield "patches-signed", patches(32, 32, 16, I8, zero=-128)
    yield "patches-u8u8", patches(33, 16, 24, wkind=U8, zero=77, wzero=255)
    yield "patches-long", patches(34, 200, 16, zero=255)
    yield "patches-dynamic", patches(35, 16, 16, dynamic=True)
    yield "activations", activations(36)
    yield "activations-signed", activations(37, I8)
    yield "narrow", narrow(29)
    yield "narrow-signed", narrow(30, I8)
    yield "multiplied", multiplied(38, 10)
    yield "multiplied-signed", multiplied(39, 12, I8)


def main():
    os.makedirs(sys.argv[1], exist_ok=True)
    for name, (net, y) in nets():
        net.save(os.path.join(sys.argv[1], name), y)


if __name__ == "__main__":
    main()
