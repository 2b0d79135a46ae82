#!/usr/bin/env python3
"""Writes a YOLO-like detector with NonMaxSuppression inside, as a script exports it: mkyolo.py OUT.onnx [SIDE] [WIDTH] [CLASSES]

Defaults: 320 pixels, 16 channels in the first layer, 80 classes. Backbone of convolutions with batch normalization and SiLU, C2f
blocks (Split, bottlenecks, Concat), SPPF (three chained MaxPools), a two-way neck with Resize, heads of three scales; boxes
by a softmax over 16 bins and a weighted sum, scores by Sigmoid. Selected boxes, scores and classes are gathered from what
NonMaxSuppression returns, so the number of rows depends on the image. Weights are random from a fixed seed.
"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BINS, PER_CLASS = 16, 5


class Net:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.inits, self.count = [], [], 0

    def const(self, array):
        name = f"w{len(self.inits)}"
        self.inits.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def floats(self, array):
        return self.const(np.asarray(array, np.float32))

    def ints(self, *array):
        return self.const(np.array(array, np.int64))

    def op(self, kind, *inputs, outputs=1, **attrs):
        self.count += 1
        names = [f"{kind.lower()}_{self.count}" + (f"_{k}" if k else "") for k in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, names[0], **attrs))
        return names[0] if outputs == 1 else names

    def conv(self, x, cin, cout, kernel=3, stride=1):
        """Convolution, batch normalization with random statistics, SiLU."""
        fan = cin * kernel * kernel
        w = self.floats(self.rng.standard_normal((cout, cin, kernel, kernel)) * np.sqrt(2 / fan))
        y = self.op("Conv", x, w, kernel_shape=[kernel, kernel], strides=[stride, stride], pads=[kernel // 2] * 4)
        scale, mean = 1 + 0.1 * self.rng.standard_normal(cout), 0.1 * self.rng.standard_normal(cout)
        y = self.op("BatchNormalization", y, self.floats(scale), self.floats(0.1 * self.rng.standard_normal(cout)),
                    self.floats(mean), self.floats(self.rng.uniform(0.5, 1.5, cout)), epsilon=1e-3)
        return self.op("Mul", y, self.op("Sigmoid", y))

    def c2f(self, x, cin, cout, residual=True):
        half = cout // 2
        parts = self.op("Split", self.conv(x, cin, cout, 1), self.ints(half, half), outputs=2, axis=1)
        y = self.conv(self.conv(parts[1], half, half), half, half)
        parts.append(self.op("Add", parts[1], y) if residual else y)
        return self.conv(self.op("Concat", *parts, axis=1), 3 * half, cout, 1)

    def sppf(self, x, c):
        parts = [self.conv(x, c, c // 2, 1)]
        for _ in range(3):
            parts.append(self.op("MaxPool", parts[-1], kernel_shape=[5, 5], pads=[2] * 4))
        return self.conv(self.op("Concat", *parts, axis=1), 2 * c, c, 1)

    def up(self, x):
        return self.op("Resize", x, "", self.floats([1, 1, 2, 2]), mode="nearest", nearest_mode="floor",
                       coordinate_transformation_mode="asymmetric")

    def join(self, *parts):
        return self.op("Concat", *parts, axis=1)

    def last(self, x, cin, cout, bias, scale):
        w = self.floats(self.rng.standard_normal((cout, cin, 1, 1)) * scale / np.sqrt(cin))
        b = self.floats(bias + 0.3 * self.rng.standard_normal(cout))
        return self.op("Reshape", self.op("Conv", x, w, b, kernel_shape=[1, 1]), self.ints(1, cout, -1))


def backbone(n, w):
    x = n.conv(n.conv("image", 3, w, stride=2), w, 2 * w, stride=2)
    x = n.c2f(x, 2 * w, 2 * w)
    p3 = n.c2f(n.conv(x, 2 * w, 4 * w, stride=2), 4 * w, 4 * w)
    p4 = n.c2f(n.conv(p3, 4 * w, 8 * w, stride=2), 8 * w, 8 * w)
    p5 = n.sppf(n.c2f(n.conv(p4, 8 * w, 16 * w, stride=2), 16 * w, 16 * w), 16 * w)
    return p3, p4, p5


def neck(n, w, p3, p4, p5):
    t4 = n.c2f(n.join(n.up(p5), p4), 24 * w, 8 * w, False)
    t3 = n.c2f(n.join(n.up(t4), p3), 12 * w, 4 * w, False)
    b4 = n.c2f(n.join(n.conv(t3, 4 * w, 4 * w, stride=2), t4), 12 * w, 8 * w, False)
    b5 = n.c2f(n.join(n.conv(b4, 8 * w, 8 * w, stride=2), p5), 24 * w, 16 * w, False)
    return t3, b4, b5


def detect(n, w, side, classes, maps):
    """Boxes [1,cells,4] as corners in pixels, scores [1,classes,cells]."""
    boxes, scores, centres, strides = [], [], [], []
    for x, c, stride in zip(maps, (4 * w, 8 * w, 16 * w), (8, 16, 32)):
        boxes.append(n.last(n.conv(x, c, 4 * w), 4 * w, 4 * BINS, 0.0, 1.0))
        scores.append(n.last(n.conv(x, c, 4 * w), 4 * w, classes, -3.0, 3.0))
        k = side // stride
        at = np.arange(k) + 0.5
        centres.append(np.stack([np.tile(at, k), np.repeat(at, k)]) * stride)
        strides.append(np.full(k * k, stride))
    cells = sum(len(s) for s in strides)
    d = n.op("Reshape", n.op("Concat", *boxes, axis=2), n.ints(1, 4, BINS, cells))
    d = n.op("Softmax", n.op("Transpose", d, perm=[0, 2, 1, 3]), axis=1)
    d = n.op("ReduceSum", n.op("Mul", d, n.floats(np.arange(BINS).reshape(1, BINS, 1, 1))), n.ints(1), keepdims=0)
    d = n.op("Mul", d, n.floats(np.concatenate(strides).reshape(1, 1, cells)))
    near, far = n.op("Split", d, n.ints(2, 2), outputs=2, axis=1)
    centre = n.floats(np.concatenate(centres, 1).reshape(1, 2, cells))
    corners = n.op("Concat", n.op("Sub", centre, near), n.op("Add", centre, far), axis=1)
    return n.op("Transpose", corners, perm=[0, 2, 1]), n.op("Sigmoid", n.op("Concat", *scores, axis=2))


def select(n, boxes, scores):
    """Rows for the results of NonMaxSuppression: image, class and box of each."""
    kept = n.op("NonMaxSuppression", boxes, scores, n.ints(PER_CLASS), n.floats(0.5), n.floats(0.25))
    _, which, cell = n.op("Split", kept, n.ints(1, 1, 1), outputs=3, axis=1)
    n.nodes.append(helper.make_node("Squeeze", [which, n.ints(1)], ["class"], "class"))
    flat = n.op("Squeeze", cell, n.ints(1))
    n.nodes.append(helper.make_node("Gather", [n.op("Squeeze", boxes, n.ints(0)), flat], ["box"], "box", axis=0))
    n.nodes.append(helper.make_node("GatherND", [n.op("Squeeze", scores, n.ints(0)), n.op("Concat", which, cell, axis=1)],
                                    ["score"], "score"))


def main():
    side, width, classes = (int(a) for a in (sys.argv[2:] + ["320", "16", "80"][len(sys.argv) - 2:]))
    n = Net(5)
    select(n, *detect(n, width, side, classes, neck(n, width, *backbone(n, width))))
    outputs = [helper.make_tensor_value_info("box", TensorProto.FLOAT, ["found", 4]),
               helper.make_tensor_value_info("score", TensorProto.FLOAT, ["found"]),
               helper.make_tensor_value_info("class", TensorProto.INT64, ["found"])]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, side, side])
    graph = helper.make_graph(n.nodes, "yolo", [image], outputs, n.inits)
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])
    onnx.checker.check_model(model)
    onnx.save(model, sys.argv[1])


if __name__ == "__main__":
    main()
