"""Models for the tests of the Python package: mkpython.py FOLDER. Runs with the Python of build/venv."""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h


def value(name, kind, shape):
    return h.make_tensor_value_info(name, kind, shape)


def constant(name, x):
    return onnx.numpy_helper.from_array(np.asarray(x), name)


def save(folder, name, nodes, inputs, outputs, init=(), opset=17, domains=()):
    graph = h.make_graph(nodes, name, inputs, outputs, list(init))
    model = h.make_model(graph, ir_version=8, opset_imports=[h.make_opsetid("", opset), *(h.make_opsetid(d, 3) for d in domains)])
    onnx.save(model, os.path.join(folder, name + ".onnx"))


def main():
    folder, f32 = sys.argv[1], T.FLOAT
    node = h.make_node
    save(folder, "two", [node("Add", ["a", "b"], ["sum"]), node("Mul", ["a", "b"], ["product"])],
         [value("a", f32, [2, 3]), value("b", f32, [2, 3])], [value("sum", f32, [2, 3]), value("product", f32, [2, 3])])
    save(folder, "open", [node("Sub", ["a", "b"], ["d"]), node("Relu", ["d"], ["y"])],
         [value("a", f32, ["n", 4]), value("b", f32, [1, 4])], [value("y", f32, ["n", 4])])
    save(folder, "state", [node("Add", ["x", "h_in"], ["h_out"]), node("Mul", ["h_out", "two"], ["y"])],
         [value("x", f32, [3]), value("h_in", f32, [3])], [value("y", f32, [3]), value("h_out", f32, [3])], [constant("two", np.float32(2))])
    save(folder, "reshape", [node("Reshape", ["x", "shape"], ["y"])], [value("x", f32, [12]), value("shape", T.INT64, [2])],
         [value("y", f32, None)])
    save(folder, "text", [node("StringNormalizer", ["x"], ["y"], case_change_action="UPPER")],
         [value("x", T.STRING, ["n"])], [value("y", T.STRING, ["m"])])
    save(folder, "sequence", [node("SequenceInsert", ["s", "x"], ["y"])],
         [h.make_tensor_sequence_value_info("s", f32, [2]), value("x", f32, [2])], [h.make_tensor_sequence_value_info("y", f32, [2])])
    maps = h.make_value_info("y", h.make_sequence_type_proto(h.make_map_type_proto(T.INT64, h.make_tensor_type_proto(f32, []))))
    save(folder, "maps", [node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_int64s=[7, 8])],
         [value("x", f32, ["n", 2])], [maps], domains=["ai.onnx.ml"])
    save(folder, "pick", [node("Gather", ["x", "i"], ["y"])], [value("x", f32, [4]), value("i", T.INT64, [2])], [value("y", f32, [2])])
    save(folder, "bf16", [node("Mul", ["x", "x"], ["y"])], [value("x", T.BFLOAT16, [2, 2])], [value("y", T.BFLOAT16, [2, 2])])
    save(folder, "unsupported", [node("Relu", ["x"], ["a"]), node("NoSuchOperator", ["a"], ["y"], name="last")],
         [value("x", f32, [2])], [value("y", f32, [2])])
    rng = np.random.default_rng(1)
    layers, inits, last = [], [], "x"
    for i in range(8):
        inits.append(constant(f"w{i}", (rng.standard_normal((512, 512)) / 23).astype(np.float32)))
        layers += [node("MatMul", [last, f"w{i}"], [f"m{i}"]), node("Relu", [f"m{i}"], [f"r{i}"])]
        last = f"r{i}"
    save(folder, "long", layers, [value("x", f32, [512, 512])], [value(last, f32, [512, 512])], inits)
    save(folder, "large", [node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)], [value("x", f32, [1 << 25])], [value("y", f32, [])],
         [constant("axes", np.array([0], np.int64))])
    save(folder, "found", [node("NonZero", ["x"], ["y"])], [value("x", f32, [6])], [value("y", T.INT64, [1, "k"])])
    save(folder, "ids", [node("Gather", ["table", "i"], ["y"])], [value("i", T.INT64, ["n", 2])], [value("y", T.INT32, ["n", 2, 3])],
         [constant("table", np.arange(30, dtype=np.int32).reshape(10, 3))])
    save(folder, "mean", [node("ReduceMean", ["x"], ["y"], axes=[0], keepdims=0)], [value("x", f32, ["n", 4])], [value("y", f32, [4])])
    save(folder, "fixed", [node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)], [value("x", f32, [4, 3])], [value("y", f32, [4])],
         [constant("axes", np.array([1], np.int64))])


main()
