#!/usr/bin/env python3
"""Writes small int8 networks whose products fill matrix registers, partly or more than once.

usage: mkamx.py FOLDER     FOLDER/NAME.onnx
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(1)


class Net:
    def __init__(self, dtype=np.uint8):
        self.dtype, self.nodes, self.weights = dtype, [], []

    def const(self, array, dtype):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array).astype(dtype), name))
        return name

    def op(self, kind, *inputs, **attrs):
        out = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], **attrs))
        return out

    def stored(self, x, scale):
        """Through QuantizeLinear and DequantizeLinear."""
        scale, zero = self.const(scale, np.float32), self.const(128 if self.dtype == np.uint8 else -3, self.dtype)
        return self.op("DequantizeLinear", self.op("QuantizeLinear", x, scale, zero), scale, zero)

    def conv(self, x, cin, cout, k, stride=1):
        scale = self.const(RNG.random(cout) * 0.01 + 0.005, np.float32)
        weights = self.op("DequantizeLinear", self.const(RNG.integers(-127, 128, (cout, cin, k, k)), np.int8), scale, self.const(np.zeros(cout), np.int8), axis=0)
        return self.op("Conv", x, weights, self.const(RNG.standard_normal(cout) * 0.1, np.float32), kernel_shape=[k, k], pads=[k // 2] * 4, strides=[stride] * 2)

    def save(self, path, x, y, kind=TensorProto.FLOAT):
        graph = helper.make_graph(self.nodes, "net", [helper.make_tensor_value_info("x", kind, x)], [helper.make_tensor_value_info(y, kind, None)], self.weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def product(rows, k, columns, dtype):
    n = Net(dtype)
    f, zero = np.float32, 3 if dtype == np.uint8 else -7
    args = [n.const(0.02, f), n.const(zero, dtype), n.const(RNG.integers(-128, 128, (k, columns)), np.int8), n.const(0.01, f), n.const(0, np.int8),
            n.const(k**0.5 * 0.02, f), n.const(100 if dtype == np.uint8 else 5, dtype)]
    return n, [rows, k], n.op("QLinearMatMul", "x", *args), TensorProto.UINT8 if dtype == np.uint8 else TensorProto.INT8


def residual(a, b, c, size, dtype):
    """A stem, a bottleneck with a residual, and a 3x3 convolution with stride 2."""
    n = Net(dtype)
    x = n.stored(n.op("Relu", n.conv(n.stored("x", 0.02), 3, a, 7, 2)), 0.05)
    y = n.stored(n.op("Relu", n.conv(x, a, b, 1)), 0.1)
    y = n.stored(n.op("Relu", n.conv(y, b, b, 3)), 0.2)
    y = n.stored(n.conv(y, b, c, 1), 0.3)
    y = n.stored(n.op("Relu", n.op("Add", y, n.stored(n.conv(x, a, c, 1), 0.2))), 0.3)
    return n, [1, 3, size, size], n.stored(n.op("Relu", n.conv(y, c, b, 3, 2)), 0.3), TensorProto.FLOAT


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for name, (n, x, y, kind) in (("product", product(64, 128, 64, np.uint8)), ("signed", product(49, 100, 72, np.int8)), ("narrow", residual(32, 48, 72, 30, np.int8)),
                                  ("residual", residual(64, 64, 256, 28, np.uint8)), ("wide", residual(64, 80, 96, 46, np.uint8))):
        n.save(os.path.join(folder, name + ".onnx"), x, y, kind)


if __name__ == "__main__":
    main()
