"""Builds ONNX graphs with seeded random weights; nets*.py and micro.py use it to write networks.

A Net collects nodes and initializers. Values are names; `c` remembers how many channels (or features) each has, so that layers
need only say what they produce. Weights are scaled to keep activations near 1 at any depth. write() stores NAME.onnx, its
benchmark inputs as NAME.npz, and multiply-adds and bytes of weights as NAME.json.
"""
import json
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

NETS = {}


def net(name, title, **facts):
    """Registers a function that fills a Net. facts: gmac as published, at_least and aim as ratios to ONNX Runtime and to the best
    peer, net: arguments of Net."""
    def keep(f):
        NETS[name] = dict(facts, make=f, title=title)
        return f
    return keep


TYPES = {np.dtype("float32"): TensorProto.FLOAT, np.dtype("int64"): TensorProto.INT64, np.dtype("int32"): TensorProto.INT32,
         np.dtype("uint8"): TensorProto.UINT8, np.dtype("int8"): TensorProto.INT8}


class Net:
    def __init__(self, name, opset=18, seed=1):
        self.name, self.opset = name, opset
        self.rng = np.random.default_rng(seed)
        self.nodes, self.inits, self.inputs, self.outputs, self.feed, self.c = [], [], [], [], {}, {}
        self.known = {}

    # ---- values ----

    def input(self, name, array):
        """An input, with the array it is measured with."""
        self.inputs.append(helper.make_tensor_value_info(name, TYPES[array.dtype], list(array.shape)))
        self.feed[name] = array
        self.c[name] = array.shape[1] if array.ndim == 4 else array.shape[-1] if array.ndim else 1
        return name

    def image(self, *shape):
        return self.input("x", self.rng.standard_normal(shape, np.float32))

    def output(self, value, name):
        self.nodes.append(helper.make_node("Identity", [value], [name], f"out_{name}"))
        self.named(name)

    def named(self, name):
        """A value that already has the name of an output."""
        self.outputs.append(name)

    def tensor(self, array, dtype=None):
        name = f"w{len(self.inits)}"
        self.inits.append(numpy_helper.from_array(np.array(array, dtype, order="C"), name))
        return name

    def const(self, value, dtype=np.float32):
        """A small constant; equal ones are shared, as exporters do."""
        a = np.asarray(value, dtype)
        key = (a.tobytes(), a.shape, a.dtype)
        if key not in self.known:
            self.known[key] = self.tensor(a)
        return self.known[key]

    def ints(self, *values):
        return self.const(values, np.int64)

    def weight(self, *shape, scale=0.02):
        return self.tensor(self.rng.standard_normal(shape, np.float32) * np.float32(scale))

    def around(self, n, centre=1.0, spread=0.1):
        return self.tensor((centre + spread * self.rng.standard_normal(n)).astype(np.float32))

    def op(self, kind, *inputs, outs=1, **attrs):
        at = len(self.nodes)
        out = [f"t{at}"] if outs == 1 else [f"t{at}_{i}" for i in range(outs)]
        self.nodes.append(helper.make_node(kind, list(inputs), out, f"{kind.lower()}_{at}", **attrs))
        for o in out:
            self.c[o] = self.c.get(inputs[0]) if inputs else None
        return out[0] if outs == 1 else out

    # ---- layers ----

    def conv(self, x, cout, k=1, s=1, g=1, d=1, pad=None, bias=True, gain=2.0, act=None):
        kh, kw = k if isinstance(k, tuple) else (k, k)
        cin = self.c[x]
        fan = cin // g * kh * kw
        args = [x, self.weight(cout, cin // g, kh, kw, scale=(gain / fan) ** 0.5)]
        if bias:
            args.append(self.weight(cout, scale=0.1))
        ph, pw = (d * (kh - 1) // 2, d * (kw - 1) // 2) if pad is None else (pad, pad)
        y = self.op("Conv", *args, kernel_shape=[kh, kw], strides=[s, s], group=g, dilations=[d, d], pads=[ph, pw, ph, pw])
        self.c[y] = cout
        return act(y) if act else y

    def deconv(self, x, cout, k=2, s=2):
        cin = self.c[x]
        y = self.op("ConvTranspose", x, self.weight(cin, cout, k, k, scale=(1 / cin) ** 0.5), self.weight(cout, scale=0.1),
                    kernel_shape=[k, k], strides=[s, s])
        self.c[y] = cout
        return y

    def batchnorm(self, x):
        c = self.c[x]
        var = self.tensor((0.5 + self.rng.random(c)).astype(np.float32))
        return self.op("BatchNormalization", x, self.around(c), self.around(c, 0.0), self.around(c, 0.0), var, epsilon=1e-5)

    def linear(self, x, m, bias=True, gain=1.0):
        """MatMul and Add, as exporters write a dense layer on more than two axes."""
        n = self.c[x]
        y = self.op("MatMul", x, self.weight(n, m, scale=(gain / n) ** 0.5))
        y = self.op("Add", y, self.weight(m, scale=0.02)) if bias else y
        self.c[y] = m
        return y

    def gemm(self, x, m, gain=1.0):
        n = self.c[x]
        y = self.op("Gemm", x, self.weight(m, n, scale=(gain / n) ** 0.5), self.weight(m, scale=0.1), transB=1)
        self.c[y] = m
        return y

    def layernorm(self, x, eps=1e-5, spelled=False):
        c = self.c[x]
        if not spelled:
            return self.op("LayerNormalization", x, self.around(c), self.around(c, 0.0), axis=-1, epsilon=eps)
        d = self.op("Sub", x, self.mean(x, -1))
        v = self.mean(self.op("Pow", d, self.const(2.0)), -1)
        y = self.op("Div", d, self.op("Sqrt", self.op("Add", v, self.const(eps))))
        return self.op("Add", self.op("Mul", y, self.around(c)), self.around(c, 0.0))

    def mean(self, x, *axes, keep=1):
        if self.opset >= 18:
            return self.op("ReduceMean", x, self.ints(*axes), keepdims=keep)
        return self.op("ReduceMean", x, axes=list(axes), keepdims=keep)

    def relu(self, x):
        return self.op("Relu", x)

    def relu6(self, x):
        return self.op("Clip", x, self.const(0.0), self.const(6.0))

    def hardswish(self, x):
        return self.op("HardSwish", x)

    def silu(self, x):
        return self.op("Mul", x, self.op("Sigmoid", x))

    def gelu(self, x):
        """GELU from Erf in five small operators, as exporters wrote it before the operator Gelu existed."""
        y = self.op("Add", self.op("Erf", self.op("Div", x, self.const(2 ** 0.5))), self.const(1.0))
        return self.op("Mul", self.op("Mul", x, y), self.const(0.5))

    def add(self, a, b):
        return self.op("Add", a, b)

    def concat(self, *xs, axis=1):
        y = self.op("Concat", *xs, axis=axis)
        self.c[y] = sum(self.c.get(x) or 0 for x in xs)
        return y

    def split(self, x, *parts, axis=1):
        ys = self.op("Split", x, self.ints(*parts), axis=axis, outs=len(parts))
        for y, p in zip(ys, parts):
            self.c[y] = p
        return ys

    def reshape(self, x, *shape, c=None):
        y = self.op("Reshape", x, self.ints(*shape))
        self.c[y] = c or shape[-1]
        return y

    def transpose(self, x, *perm):
        return self.op("Transpose", x, perm=list(perm))

    def maxpool(self, x, k, s, pad=0, ceil=0):
        return self.op("MaxPool", x, kernel_shape=[k, k], strides=[s, s], pads=[pad] * 4, ceil_mode=ceil)

    def upsample(self, x, scale=2, mode="nearest"):
        how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"} if mode == "nearest" else {
            "coordinate_transformation_mode": "pytorch_half_pixel"}
        return self.op("Resize", x, "", self.const([1, 1, scale, scale]), mode=mode, **how)

    def head(self, x, classes=1000):
        """Global average, flatten, dense layer: the end of an image classifier."""
        self.output(self.gemm(self.op("Flatten", self.op("GlobalAveragePool", x), axis=1), classes), "y")

    # ---- files ----

    def model(self):
        outs = [helper.make_empty_tensor_value_info(o) for o in self.outputs]
        graph = helper.make_graph(self.nodes, self.name, self.inputs, outs, self.inits)
        sets = [helper.make_opsetid("", self.opset)]
        for domain, version in (("ai.onnx.ml", 3), ("com.microsoft", 1)):
            if any(node.domain == domain for node in self.nodes):
                sets.append(helper.make_opsetid(domain, version))
        m = helper.make_model(graph, opset_imports=sets, ir_version=8 if self.opset < 19 else 10)
        shapes = infer(m)
        for o in m.graph.output:
            o.CopyFrom(shapes[o.name])
        return m, shapes

    def write(self, folder):
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, self.name)
        m, shapes = self.model()
        facts = {"name": self.name, "macs": macs(m, shapes), "nodes": len(m.graph.node),
                 "weight_bytes": sum(int(np.prod(i.dims)) * itemsize(i.data_type) for i in m.graph.initializer)}
        np.savez(path + ".npz", **self.feed)
        onnx.save(m, path + ".onnx.tmp")
        os.replace(path + ".onnx.tmp", path + ".onnx")
        with open(path + ".json", "w") as f:
            json.dump(facts, f)
        return facts


def itemsize(dtype):
    return helper.tensor_dtype_to_np_dtype(dtype).itemsize


def infer(m):
    """ValueInfoProto of every value by name. Large weights are omitted to stay below the protobuf size limit."""
    light = onnx.ModelProto()
    light.CopyFrom(onnx.ModelProto(ir_version=m.ir_version, opset_import=m.opset_import))
    g = light.graph
    g.name = "g"
    for n in m.graph.node:  # onnx does not infer shapes of ONNX Runtime's own operators
        g.node.append(helper.make_node("Add", [n.input[0], n.input[3]], n.output) if n.op_type == "QLinearAdd" else n)
    g.input.extend(m.graph.input)
    g.output.extend(m.graph.output)
    for i in m.graph.initializer:
        if int(np.prod(i.dims)) <= 1024:
            g.initializer.append(i)
        else:
            g.input.append(helper.make_tensor_value_info(i.name, i.data_type, list(i.dims)))
    done = onnx.shape_inference.infer_shapes(light, strict_mode=True, data_prop=True)
    found = {v.name: v for v in [*done.graph.value_info, *done.graph.input, *done.graph.output]}
    for i in m.graph.initializer:
        found.setdefault(i.name, helper.make_tensor_value_info(i.name, i.data_type, list(i.dims)))
    return found


def extents(v):
    return [d.dim_value for d in v.type.tensor_type.shape.dim]


def macs(m, shapes):
    """Multiply-adds of the contractions, with direct convolution."""
    total = 0
    for n in m.graph.node:
        if n.op_type in ("QLinearConv", "ConvInteger", "QLinearMatMul", "MatMulInteger"):
            w, y = (extents(shapes[v]) for v in (n.input[3 if n.op_type.startswith("QL") else 1], n.output[0]))
            total += int(np.prod(y)) * (int(np.prod(w[1:])) if "Conv" in n.op_type else w[-2])
            continue
        if n.op_type not in ("Conv", "ConvTranspose", "MatMul", "Gemm", "LSTM", "GRU"):
            continue
        a, b, y = (extents(shapes[v]) for v in (n.input[0], n.input[1], n.output[0] or n.output[1]))
        if n.op_type == "Conv":
            total += int(np.prod(y)) * int(np.prod(b[1:]))
        elif n.op_type == "ConvTranspose":
            total += int(np.prod(a)) * int(np.prod(b[1:]))
        elif n.op_type == "MatMul":
            total += int(np.prod(y)) * a[-1]
        elif n.op_type == "Gemm":
            total += int(np.prod(y)) * int(np.prod(a)) // y[0]
        else:
            r = extents(shapes[n.input[2]])
            total += a[0] * a[1] * (int(np.prod(b)) + int(np.prod(r)))
    return total
