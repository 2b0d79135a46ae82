#!/usr/bin/env python3
"""Writes the "Sense" graph: two MobileNetV2 branches (width 0.75 and 1.0) over one sound spectrogram.

usage: mksense.py OUT.onnx

Input f32[1,128,192,1], three times side by side, channels first; batch normalization already folded into convolutions;
every stride-2 depthwise convolution has an explicit pad in front; ReLU6 is written as Max and Min; each branch ends
in a mean, a matrix product 1280x863, a bias and a sigmoid; the result is the mean of the two. Weights are random
from a fixed seed and scaled so that activations stay near 1; the last biases lie around -4, so that
most outputs are near 0, as in the trained network: only a few sounds are heard at a time.
"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(17)
BLOCKS = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
CLASSES = 863


class Net:
    def __init__(self):
        self.nodes, self.weights, self.count = [], [], 0

    def op(self, kind, inputs, **attrs):
        self.count += 1
        out = f"{kind.lower()}_{self.count}"
        self.nodes.append(helper.make_node(kind, inputs, [out], name=out, **attrs))
        return out

    def weight(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array, dtype=np.float32), name))
        return name

    def conv(self, x, cin, cout, kernel, stride=1, group=1, pads=None, gain=2):
        """gain: 2 where a ReLU follows, which halves the variance, else 1."""
        fan = cin // group * kernel * kernel
        w = self.weight(RNG.standard_normal((cout, cin // group, kernel, kernel)) * np.sqrt(gain / fan))
        y = self.op("Conv", [x, w], kernel_shape=[kernel, kernel], strides=[stride, stride], group=group,
                    pads=pads or [0, 0, 0, 0])
        return self.op("Add", [y, self.weight(RNG.standard_normal((1, cout, 1, 1)) * 0.1)])

    def relu6(self, x):
        return self.op("Min", [self.op("Max", [x, self.zero]), self.six])

    def block(self, x, cin, cout, expand, stride):
        hidden, y = cin * expand, x
        if expand != 1:
            y = self.relu6(self.conv(y, cin, hidden, 1))
        if stride == 2:
            y = self.op("Pad", [y, self.pads])
            y = self.relu6(self.conv(y, hidden, hidden, 3, 2, hidden))
        else:
            y = self.relu6(self.conv(y, hidden, hidden, 3, 1, hidden, [1, 1, 1, 1]))
        y = self.conv(y, hidden, cout, 1, gain=1)
        return self.op("Add", [x, y]) if stride == 1 and cin == cout else y

    def branch(self, x, width):
        def channels(c):
            c = c * width
            return max(8, int(c + 4) // 8 * 8) if int(c + 4) // 8 * 8 >= 0.9 * c else int(c + 4) // 8 * 8 + 8
        cin = channels(32)
        x = self.relu6(self.conv(x, 3, cin, 3, 2, 1, [0, 0, 1, 1]))
        for expand, c, repeat, stride in BLOCKS:
            for i in range(repeat):
                x = self.block(x, cin, channels(c), expand, stride if i == 0 else 1)
                cin = channels(c)
        x = self.relu6(self.conv(x, cin, 1280, 1))
        x = self.op("ReduceMean", [x], axes=[2, 3], keepdims=0)
        x = self.op("MatMul", [x, self.weight(RNG.standard_normal((1280, CLASSES)) * np.sqrt(1 / 1280))])
        return self.op("Sigmoid", [self.op("Add", [x, self.weight(RNG.standard_normal(CLASSES) * 0.1 - 4)])])


def main():
    n = Net()
    n.zero, n.six = n.weight(np.float32(0)), n.weight(np.float32(6))
    n.weights.append(numpy_helper.from_array(np.array([0, 0, 0, 0, 0, 0, 1, 1], np.int64), "pads"))
    n.pads = "pads"
    x = n.op("Transpose", [n.op("Concat", ["x"] * 3, axis=3)], perm=[0, 3, 1, 2])
    both = n.op("Add", [n.branch(x, 0.75), n.branch(x, 1.0)])
    n.nodes.append(helper.make_node("Mul", [both, n.weight(np.float32(0.5))], ["y"], name="mean"))
    graph = helper.make_graph(n.nodes, "sense",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 128, 192, 1])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, CLASSES])], n.weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, sys.argv[1])


if __name__ == "__main__":
    main()
