"""A BERT-base encoder with seeded random weights, as an exporter spells it: bench/mkbert.py FILE [LAYERS] [HIDDEN]

12 layers of width 768 by default, about 436 MB. Layer norm, GELU and attention are written out in small operators, head
shapes come from Shape-Gather-Concat-Reshape chains, batch and sequence are symbolic. The same bytes every time.
"""
import sys

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, save

VOCABULARY, POSITIONS, HEAD = 30522, 512, 64


class Bert:
    def __init__(self, hidden):
        self.rng = np.random.default_rng(1)
        self.hidden, self.heads = hidden, hidden // HEAD
        self.nodes, self.inits, self.count = [], [], 0

    def weight(self, *shape):
        name = f"w{len(self.inits)}"
        self.inits.append(numpy_helper.from_array(self.rng.standard_normal(shape, np.float32) * np.float32(0.02), name))
        return name

    def const(self, value, dtype=np.float32):
        name = f"c{len(self.inits)}"
        self.inits.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def op(self, kind, *inputs, **attrs):
        self.count += 1
        self.nodes.append(helper.make_node(kind, list(inputs), [f"t{self.count}"], f"{kind}_{self.count}", **attrs))
        return f"t{self.count}"

    def linear(self, x, n, m):
        return self.op("Add", self.op("MatMul", x, self.weight(n, m)), self.weight(m))

    def norm(self, x):
        d = self.op("Sub", x, self.op("ReduceMean", x, axes=[-1], keepdims=1))
        v = self.op("ReduceMean", self.op("Pow", d, self.const(2.0)), axes=[-1], keepdims=1)
        y = self.op("Div", d, self.op("Sqrt", self.op("Add", v, self.const(1e-12))))
        return self.op("Add", self.op("Mul", y, self.op("Add", self.weight(self.hidden), self.const(1.0))), self.weight(self.hidden))

    def gelu(self, x):
        y = self.op("Add", self.op("Erf", self.op("Div", x, self.const(2 ** 0.5))), self.const(1.0))
        return self.op("Mul", self.op("Mul", x, y), self.const(0.5))

    def extent(self, x, axis):
        part = self.op("Gather", self.op("Shape", x), self.const(axis, np.int64), axis=0)
        return self.op("Unsqueeze", part, self.const([0], np.int64))

    def split(self, x, perm):
        shape = self.op("Concat", self.extent(x, 0), self.extent(x, 1), self.const([self.heads], np.int64),
                        self.const([HEAD], np.int64), axis=0)
        return self.op("Transpose", self.op("Reshape", x, shape), perm=perm)

    def attention(self, x, mask):
        h = self.hidden
        q, k, v = (self.split(self.linear(x, h, h), p) for p in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        scores = self.op("Add", self.op("Div", self.op("MatMul", q, k), self.const(HEAD ** 0.5)), mask)
        y = self.op("Transpose", self.op("MatMul", self.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        shape = self.op("Concat", self.extent(x, 0), self.extent(x, 1), self.const([h], np.int64), axis=0)
        return self.linear(self.op("Reshape", y, shape), h, h)

    def build(self, layers):
        h = self.hidden
        x = self.op("Add", self.op("Gather", self.weight(VOCABULARY, h), "input_ids"),
                    self.op("Slice", self.weight(1, POSITIONS, h), self.const([0], np.int64), self.extent("input_ids", 1),
                            self.const([1], np.int64)))
        x = self.norm(x)
        mask = self.op("Unsqueeze", self.op("Cast", "attention_mask", to=TensorProto.FLOAT), self.const([1, 2], np.int64))
        mask = self.op("Mul", self.op("Sub", self.const(1.0), mask), self.const(-10000.0))
        for _ in range(layers):
            x = self.norm(self.op("Add", x, self.attention(x, mask)))
            x = self.norm(self.op("Add", x, self.linear(self.gelu(self.linear(x, h, 4 * h)), 4 * h, h)))
        return x


def main():
    path = sys.argv[1]
    layers = int(sys.argv[2]) if len(sys.argv) > 2 else 12
    b = Bert(int(sys.argv[3]) if len(sys.argv) > 3 else 768)
    b.nodes.append(helper.make_node("Identity", [b.build(layers)], ["last_hidden_state"], "out"))
    ids = [helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "sequence"]) for n in ("input_ids", "attention_mask")]
    out = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "sequence", b.hidden])
    graph = helper.make_graph(b.nodes, "bert", ids, [out], b.inits)
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 14)])
    save(model, path)
    if layers < 3:
        checker.check_model(path)


main()
