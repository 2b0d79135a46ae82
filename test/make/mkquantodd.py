"""Small models that cannot be quantized, or not well, with examples: mkquantodd.py OUT writes NAME.onnx and NAME.npz for
test/suite/quantize.py (odd)."""
import os
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper

node, f32 = helper.make_node, np.float32


def main(out):
    os.makedirs(out, exist_ok=True)
    rng = np.random.default_rng(0)

    def save(name, nodes, inits, x, y, reads="x"):
        infos = [[helper.make_tensor_value_info(n, TensorProto.FLOAT, s)] for n, s in ((reads, x), ("y", y))]
        graph = helper.make_graph(nodes, name, *infos, [numpy_helper.from_array(np.asarray(a, f32), n) for n, a in inits.items()])
        with open(os.path.join(out, name + ".onnx"), "wb") as f:
            f.write(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())

    def data(name, **arrays):
        np.savez(os.path.join(out, name), **arrays)

    one = [1, 1, 1, 1]
    norm = node("BatchNormalization", ["c", *"somv"], ["y"])
    conv = node("Conv", ["x", "w", "b"], ["c"], name="conv")
    save("short_bias", [conv, node("Relu", ["c"], ["r"]), node("Conv", ["r", "w2"], ["y"])],
         {"w": np.full((64, 1, 1, 1), 3), "b": np.ones(1), "w2": np.ones((2, 64, 1, 1))}, one, [1, 2, 1, 1])
    save("short_bias_norm", [conv, norm], {"w": np.ones((64, 1, 1, 1)), "b": np.ones(1), **{k: np.ones(64) for k in "somv"}}, one, [1, 64, 1, 1])
    save("no_channels", [node("Conv", ["x", "w"], ["c"]), norm], {"w": np.ones((0, 1, 1, 1)), **{k: np.ones(0) for k in "somv"}}, one, [1, 0, 1, 1])

    w = rng.normal(size=(64, 64)).astype(f32)
    row = [1, 64]
    product = node("MatMul", ["x", "w"], ["y"], name="mm")
    chain = [node("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(60000)]
    save("unsorted", [node("MatMul", ["v60000", "w"], ["y"]), *chain[::-1]], {"w": w}, row, row, "v0")
    save("open", [product], {"w": w}, ["batch", "length", 64], ["batch", "length", 64])
    for name, x in (("plain", w[3, 3]), ("infinite", np.inf), ("nan", np.nan), ("big", 1e6)):
        changed = w.copy()
        changed[3, 3] = x
        save(name, [product], {"w": changed}, row, row)
    first = [node("MatMul", ["x", "w"], ["a"], name="mm"), node("Relu", ["a"], ["b"])]
    save("logs", [*first, node("Log", ["b"], ["y"])], {"w": w}, row, row)  # -inf, at other positions than before
    save("far_inputs", [*first, node("Log", ["b"], ["h"]), node("MatMul", ["h", "w"], ["y"], name="mm2")], {"w": w}, row, row)
    two = np.zeros((64, 1))
    two[:2] = 1
    save("silent", [node("MatMul", ["x", "w"], ["a"]), node("Sub", ["a", "c"], ["d"]), node("Relu", ["d"], ["y"])], {"w": two, "c": [[0.7021]]}, row, [1, 1])

    infos = [helper.make_tensor_value_info(n, t, row[:1] + s) for n, t, s in (("x", TensorProto.FLOAT, [64]), ("y", TensorProto.FLOAT, [64]), ("z", TensorProto.FLOAT, [64]), ("best", TensorProto.INT64, [1]), ("fine", TensorProto.INT64, [64]))]
    several = helper.make_graph([product, node("Mul", ["y", "y"], ["z"]), node("ArgMax", ["y"], ["best"], axis=1), node("Mul", ["y", "n"], ["t"]), node("Cast", ["t"], ["fine"], to=TensorProto.INT64)], "several", infos[:1], infos[1:], [numpy_helper.from_array(a, n) for n, a in (("w", w), ("n", np.asarray(1000, f32)))])
    with open(os.path.join(out, "several.onnx"), "wb") as f:
        f.write(helper.make_model(several, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())

    bell, word = (helper.make_tensor_value_info(n, t, s) for n, t, s in (("bell\a", TensorProto.FLOAT, row), ("word\x1b[31m", TensorProto.STRING, [1])))  # names with terminal escapes
    encoder = node("LabelEncoder", ["best"], [word.name], domain="ai.onnx.ml", keys_int64s=list(range(64)), values_strings=[f"{i % 32}" for i in range(64)])
    words = helper.make_graph([product, node("Neg", ["y"], [bell.name]), node("ArgMax", ["y"], ["best"], axis=1, keepdims=0), encoder], "words", infos[:1], [bell, word], [numpy_helper.from_array(w, "w")])
    with open(os.path.join(out, "words.onnx"), "wb") as f:
        f.write(helper.make_model(words, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 2)], ir_version=8).SerializeToString())

    begun = helper.make_graph([node("DynamicQuantizeMatMul", ["x", "b", "s"], ["h"], domain="com.microsoft"), node("MatMul", ["h", "w"], ["y"])], "begun", infos[:1], infos[1:2],
                              [numpy_helper.from_array(a, n) for n, a in (("w", w), ("b", (np.arange(64 * 64) % 9).reshape(64, 64).astype(np.uint8)), ("s", np.asarray(0.1, f32)))])
    with open(os.path.join(out, "begun.onnx"), "wb") as f:
        f.write(helper.make_model(begun, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=8).SerializeToString())

    small, sides = rng.normal(size=(16, 16)).astype(f32), [1, 16, 16]  # output channels of the convolution are axis 1, those of the product the last axis
    save("two_axes", [node("MatMul", ["x", "w"], ["m"]), node("Conv", ["x", "k", "z"], ["a"]), node("Add", ["m", "u"], ["b"]), node("Concat", ["a", "b"], ["y"], axis=1)],
         {"k": small[:, :, None], "w": small, "z": np.zeros(16), "u": np.zeros(16)}, sides, [1, 32, 16])
    data("two_axes", x=(rng.normal(size=(20, 16, 16)) + np.arange(16)[:, None] * 4).astype(f32))

    data("x", x=rng.normal(size=(20, 64)).astype(f32))
    data("one", x=rng.normal(size=(1, 64)).astype(f32))
    x = np.zeros((10, 64), f32)
    x[:, :3] = 0.351, 0.351, 1
    data("silent", x=x)  # 0.702, whose byte is above 0.7021
    x = rng.normal(size=(120, 64)).astype(f32) * f32(0.02)
    x[::3] *= 50  # every third example, and so every one on which choices are made
    data("uneven", x=x)
    data("label_far", x=x, t=np.full(120, 64))
    data("label_many", x=x, t=np.zeros((120, 2), np.int64))


if __name__ == "__main__":
    main(sys.argv[1])
