"""Collector of bad files, and short names for functions of onnx.helper.

A case states the exit code of `ingot run` (one, or a tuple where more than one is right), what stderr must mention, and its
level: `file` (inspect must refuse it with the same code), `graph` (inspect may also describe it and end with 0), or
`any` (valid or not: both verbs must end with 0, 3 or 4, and must not crash).
Faulty nodes are called `culprit`, so that a message which names the node can be recognized.
"""
import json
import os

import numpy as np
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

F, I = T.FLOAT, T.INT64


class Bad:
    def __init__(self, out):
        self.out = out
        self.rows = []

    def folder(self, name):
        path = os.path.join(self.out, name)
        os.makedirs(path, exist_ok=True)
        return path

    def raw(self, name, data, code=4, text=None, level="file", inputs=(), ops=()):
        path = os.path.join(self.folder(name), "bad.onnx")
        with open(path, "wb") as f:
            f.write(data)
        self.row(name, path, code, text, level, inputs, ops)

    def row(self, name, path, code=4, text=None, level="file", inputs=(), ops=()):
        if any(r["name"] == name for r in self.rows):
            raise ValueError("two cases are called " + name)
        codes = [0, 3, 4] if level == "any" else list(code) if isinstance(code, tuple) else [code]
        self.rows.append({"name": name, "file": path, "codes": codes, "text": text, "level": level,
                          "inputs": sorted(set(inputs)), "ops": sorted(set(ops))})

    def model(self, name, m, code=4, text=None, level="file"):
        have = {t.name for t in m.graph.initializer} | {s.values.name for s in m.graph.sparse_initializer}
        inputs = [v.name for v in m.graph.input if v.name not in have and v.name and "\0" not in v.name]
        ops = [n.op_type for n in m.graph.node]
        self.raw(name, m.SerializeToString(), code, text, level, inputs, ops)

    def op(self, name, op, inputs, outputs=None, code=4, text="culprit", level="graph", opset=17, consts=None,
           domain="", **attrs):
        """One faulty node. inputs: {name: (type, shape)} for graph inputs, consts: {name: array}; the order of both
        together is the order of the node's inputs. outputs: list of names."""
        self.model(name, one(op, inputs, outputs, opset, consts, domain, **attrs), code, text, level)

    def close(self):
        with open(os.path.join(self.out, "manifest.json"), "w") as f:
            json.dump(self.rows, f, indent=1)


def val(name, kind=F, shape=(2, 3)):
    return h.make_tensor_value_info(name, kind, shape)


def const(name, a):
    return numpy_helper.from_array(np.asarray(a), name)


def ints(*a):
    return np.array(a, np.int64)


def floats(*shape):
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def model(nodes, inputs, outputs, inits=(), opset=17, domain="", ir=8, functions=(), sparse=(), imports=None):
    g = h.make_graph(list(nodes), "g", list(inputs), list(outputs), list(inits), sparse_initializer=list(sparse))
    imports = imports if imports is not None else [h.make_opsetid("", opset)]
    if domain:
        imports.append(h.make_opsetid(domain, 1))
    return h.make_model(g, ir_version=ir, opset_imports=imports, functions=list(functions), producer_name="mkbad")


RESULT = {"ArgMax": I, "Shape": I, "Not": T.BOOL, "And": T.BOOL, "ConstantOfShape": F, "OneHot": F, "DequantizeLinear": F,
          "QuantizeLinear": T.UINT8, "MatMulInteger": T.INT32, "OptionalHasElement": T.BOOL, "Constant": F}


def result_kind(op, inputs, consts, attrs):
    """Element type of the first output: for most operators that of the first operand, for Where the second."""
    if op == "Cast" and attrs.get("to") in T.DataType.values():
        return attrs["to"] or F
    kinds = [k for k, _ in inputs.values()] + [h.np_dtype_to_tensor_dtype(np.asarray(a).dtype) for a in consts.values()]
    return RESULT.get(op) or (kinds[1 if op == "Where" and len(kinds) > 1 else 0] if kinds else F)


def one(op, inputs, outputs=None, opset=17, consts=None, domain="", **attrs):
    outputs = outputs or ["y"]
    consts = consts or {}
    node = h.make_node(op, list(inputs) + list(consts), outputs, "culprit", domain=domain, **attrs)
    first = result_kind(op, inputs, consts, attrs)
    kinds = [first] + [I if op == "TopK" else first] * len(outputs)
    return model([node], [val(n, k, s) for n, (k, s) in inputs.items()], [val(o, k, None) for o, k in zip(outputs, kinds)],
                 [const(n, a) for n, a in consts.items()], opset, domain)


def relu(x="x", y="y", name="r"):
    return h.make_node("Relu", [x], [y], name)


def plain():
    """A small sound model: conv, relu, gemm."""
    return model([h.make_node("Conv", ["x", "w"], ["a"], "conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
                  relu("a", "b"), h.make_node("Flatten", ["b"], ["c"], "flat"),
                  h.make_node("MatMul", ["c", "m"], ["y"], "mm")],
                 [val("x", F, (1, 2, 5, 5))], [val("y", F, (1, 4))],
                 [const("w", floats(3, 2, 3, 3)), const("m", floats(75, 4))])
