#!/usr/bin/env python3
"""Writes test/docs/tour.onnx, the model that docs/tour.md follows, and test/docs/tour.npy, an input of it.

The model has a convolution, Relu, Flatten as exporters spell it (Shape, Gather, Concat, Reshape), Gemm, and a Range added to
the result. It also has what exported files often contain: a product with 1, a duplicate computation, an unused one. The
weights are few and short, so that dumps can be read. test/suite/tour.py checks that the files are what this script writes.

    build/venv/bin/python tools/mktour.py [DIR]
"""
import os
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WEIGHTS = {
    "conv.w": np.array([1, -1, 0.5, 0, 0.25, 0, -0.5, 2], np.float32).reshape(2, 1, 2, 2),
    "conv.b": np.array([0.5, -0.25], np.float32),
    "fc.w": np.array([1, 0, -1, 0.5, 2, -2, 0, 1, 0.5, 0.5, 0, -1, 1, 0, 3, -0.5], np.float32).reshape(2, 8),
    "fc.b": np.array([0.125, -1], np.float32),
    "first": np.array([0], np.int64),
    "rest": np.array([-1], np.int64),
    "zero": np.array(0, np.int64),
    "one": np.array(1, np.int64),
    "two": np.array(2, np.int64),
    "unit": np.array(1, np.float32),
}
IMAGES = np.array([0, 0.5, 1, 0, 0.5, 1, 0, 0.5, 1, 1, 0, 0, 0, 0.25, 0, 0, 0, 1], np.float32).reshape(2, 1, 3, 3)


def node(op, inputs, output, **attrs):
    return helper.make_node(op, inputs, [output], output, **attrs)


def model():
    nodes = [
        node("Conv", ["x", "conv.w", "conv.b"], "conv", kernel_shape=[2, 2]),
        node("Relu", ["conv"], "relu"),
        node("Shape", ["relu"], "shape"),
        node("Gather", ["shape", "first"], "rows"),
        node("Concat", ["rows", "rest"], "target", axis=0),
        node("Reshape", ["relu", "target"], "flat"),
        node("Gemm", ["flat", "fc.w", "fc.b"], "fc", transB=1),
        node("Range", ["zero", "two", "one"], "index"),
        node("Cast", ["index"], "offset", to=TensorProto.FLOAT),
        node("Add", ["fc", "offset"], "moved"),
        node("Mul", ["moved", "unit"], "scaled"),
        node("Tanh", ["scaled"], "a"),
        node("Tanh", ["moved"], "b"),
        node("Exp", ["moved"], "unused"),
        node("Mul", ["a", "b"], "y"),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 1, 3, 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 2])
    weights = [numpy_helper.from_array(a, name) for name, a in WEIGHTS.items()]
    graph = helper.make_graph(nodes, "tour", [x], [y], weights)
    return helper.make_model(graph, producer_name="ingot", ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "test", "docs")
    with open(os.path.join(folder, "tour.onnx"), "wb") as f:
        f.write(model().SerializeToString(deterministic=True))
    np.save(os.path.join(folder, "tour.npy"), IMAGES)


main()
