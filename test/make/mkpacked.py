"""Writes products with block-quantized 4-bit and 8-bit weights, and the results of ONNX Runtime.

usage: mkpacked.py DIR    writes DIR/NAME.onnx and DIR/NAME.npz: input x, result y
"""
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh
from oracle import session

RNG = np.random.default_rng(11)
CODES = {"int4": (T.INT4, -8, 8), "uint4": (T.UINT4, 0, 16), "int8": (T.INT8, -128, 128)}
# rows of x, N, K, block, bits, zero points, accuracy level
NBITS = {"n4": (1, 2049, 512, 32, 4, None, 0), "n4_zero": (3, 4096, 288, 64, 4, "packed", 1), "n4_float": (2, 1100, 1024, 128, 4, "float", 0),
         "n8": (2, 1024, 1024, 32, 8, "packed", 0), "n4_bytes": (5, 130, 256, 32, 4, "packed", 4),
         "n8_bytes": (1, 256, 512, 64, 8, None, 4), "n4_small": (2, 64, 64, 32, 4, None, 0), "n4_narrow": (2, 2048, 512, 16, 4, None, 0), "n4_many": (20, 1024, 1024, 32, 4, None, 0)}
# rows of x, N, K, block, axis, type, zero points
LINEAR = {"d4": (3, 1024, 1024, 32, 0, "int4", True), "d4_u": (1, 1024, 1088, 64, 0, "uint4", False), "d4_along": (2, 1024, 1024, 32, 1, "int4", False),
          "d8": (2, 1024, 1024, 128, 0, "int8", True)}


def info(name, *shape):
    return h.make_tensor_value_info(name, T.FLOAT, shape)


def scales(*shape):
    return (RNG.standard_normal(shape) * 0.02).astype(np.float32)


def write(out, name, nodes, weights, rows, n, k, opset, optimise):
    graph = h.make_graph(nodes, name, [info("x", rows, k)], [info("y", rows, n)], weights)
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", opset), h.make_opsetid("com.microsoft", 1)], ir_version=10)
    onnx.save(model, out / f"{name}.onnx")
    x = RNG.standard_normal((rows, k)).astype(np.float32)
    y = session(model.SerializeToString(), optimise).run(None, {"x": x})[0]
    np.savez(out / f"{name}.npz", x=x, y=y)


def main(out):
    out.mkdir(parents=True, exist_ok=True)
    for name, (rows, n, k, block, bits, zero, level) in NBITS.items():
        blocks = -(-k // block)
        weights = [nh.from_array(RNG.integers(0, 256, (n, blocks, block * bits // 8), dtype=np.uint8), "w"), nh.from_array(scales(n, blocks), "s")]
        if zero == "packed":
            weights.append(nh.from_array(RNG.integers(0, 256, (n, -(-blocks * bits // 8)), dtype=np.uint8), "z"))
        elif zero:
            weights.append(nh.from_array((RNG.random((n, blocks)) * 15).astype(np.float32), "z"))
        node = h.make_node("MatMulNBits", ["x", "w", "s", *(["z"] if zero else [])], ["y"], domain="com.microsoft", N=n, K=k, block_size=block, bits=bits, accuracy_level=level)
        write(out, name, [node], weights, rows, n, k, 21, True)
    for name, (rows, n, k, block, axis, kind, zero) in LINEAR.items():
        code, low, high = CODES[kind]
        cut = [k // block, n] if axis == 0 else [k, n // block]

        def ints(what, shape, code=code, low=low, high=high):
            return h.make_tensor(what, code, shape, RNG.integers(low, high, shape).flatten().tolist())

        weights = [ints("q", [k, n]), nh.from_array(scales(*cut), "s"), *([ints("z", cut)] if zero else [])]
        nodes = [h.make_node("DequantizeLinear", ["q", "s", *(["z"] if zero else [])], ["w"], axis=axis, block_size=block), h.make_node("MatMul", ["x", "w"], ["y"])]
        write(out, name, nodes, weights, rows, n, k, 21, False)  # with optimizations, ONNX Runtime would quantize x


main(Path(sys.argv[1]))
