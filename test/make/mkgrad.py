#!/usr/bin/env python3
"""Writes small networks whose gradients are compared with finite differences.

usage: mkgrad.py FOLDER     writes FOLDER/NAME.onnx
"""
import os
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save


class Net:
    def __init__(self, seed, **inputs):
        self.rng = np.random.default_rng(seed)
        self.inputs, self.nodes, self.weights = inputs, [], []

    def weight(self, *shape, scale=None, shift=0.0):
        scale = scale if scale is not None else 1 / np.sqrt(max(1, np.prod(shape[1:])))
        return self.const((self.rng.standard_normal(shape) * scale + shift).astype(np.float32))

    def const(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def ints(self, *x):
        return self.const(np.array(x, np.int64))

    def op(self, kind, *inputs, outputs=1, domain="", **attrs):
        out = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), out, domain=domain, **attrs))
        return out[0] if outputs == 1 else out

    # ---- layers ----

    def dense(self, x, cin, cout, bias=True):
        y = self.op("MatMul", x, self.weight(cin, cout, scale=1 / np.sqrt(cin)))
        return self.op("Add", y, self.weight(cout, scale=0.1)) if bias else y

    def conv(self, x, cin, cout, k, stride=1, group=1, pad=None, dilation=1, dims=2, bias=True):
        pad = dilation * (k // 2) if pad is None else pad
        w = self.weight(cout, cin // group, *[k] * dims)
        more = [self.weight(cout, scale=0.1)] if bias else []
        return self.op("Conv", x, w, *more, kernel_shape=[k] * dims, group=group, strides=[stride] * dims, pads=[pad] * 2 * dims, dilations=[dilation] * dims)

    def bn(self, x, c):
        return self.op("BatchNormalization", x, self.weight(c, scale=0.1, shift=1), self.weight(c, scale=0.1), self.weight(c, scale=0.1),
                       self.const(self.rng.uniform(0.5, 1.5, c).astype(np.float32)))

    def relu(self, x):
        return self.op("Relu", x)

    def pool(self, x, kind="MaxPool", k=2, stride=None, pad=0, **attrs):
        return self.op(kind, x, kernel_shape=[k, k], strides=[stride or k] * 2, pads=[pad] * 4, **attrs)

    def silu(self, x):
        return self.op("Mul", x, self.op("Sigmoid", x))

    def norm(self, x, c):
        return self.op("LayerNormalization", x, self.weight(c, scale=0.1, shift=1), self.weight(c, scale=0.1), axis=-1)

    def gelu(self, x):
        half = self.const(np.float32(0.5))
        e = self.op("Erf", self.op("Mul", x, self.const(np.float32(0.70710678))))
        return self.op("Mul", self.op("Mul", x, half), self.op("Add", e, self.const(np.float32(1))))

    def heads(self, x, n, t, h, c):
        return self.op("Transpose", self.op("Reshape", x, self.ints(n, t, h, c // h)), perm=[0, 2, 1, 3])

    def attention(self, x, n, t, c, h, causal=False):
        q, k, v = (self.heads(self.dense(x, c, c), n, t, h, c) for _ in range(3))
        s = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2]))
        s = self.op("Mul", s, self.const(np.float32((c // h) ** -0.5)))
        if causal:
            s = self.op("Add", s, self.const(np.triu(np.full((t, t), -1e4, np.float32), 1)))
        y = self.op("MatMul", self.op("Softmax", s, axis=-1), v)
        y = self.op("Reshape", self.op("Transpose", y, perm=[0, 2, 1, 3]), self.ints(n, t, c))
        return self.dense(y, c, c)

    def block(self, x, n, t, c, h, causal=False, pre=False):
        if pre:
            x = self.op("Add", x, self.attention(self.norm(x, c), n, t, c, h, causal))
            return self.op("Add", x, self.dense(self.gelu(self.dense(self.norm(x, c), c, 2 * c)), 2 * c, c))
        x = self.norm(self.op("Add", x, self.attention(x, n, t, c, h, causal)), c)
        return self.norm(self.op("Add", x, self.dense(self.gelu(self.dense(x, c, 2 * c)), 2 * c, c)), c)

    def embed(self, ids, words, c, t):
        return self.op("Add", self.op("Gather", self.weight(words, c, scale=0.5), ids), self.weight(t, c, scale=0.5))

    def head(self, x, c, classes):
        return self.dense(self.op("Flatten", self.op("GlobalAveragePool", x)), c, classes)

    def residual(self, x, cin, cout, stride=1):
        y = self.relu(self.bn(self.conv(x, cin, cout, 3, stride, bias=False), cout))
        y = self.bn(self.conv(y, cout, cout, 3, bias=False), cout)
        if stride > 1 or cin != cout:
            x = self.bn(self.conv(x, cin, cout, 1, stride, bias=False), cout)
        return self.relu(self.op("Add", x, y))

    def inverted(self, x, cin, cout, stride, grow=2):
        six = self.const(np.float32(0)), self.const(np.float32(6))
        y = self.op("Clip", self.bn(self.conv(x, cin, cin * grow, 1, bias=False), cin * grow), *six)
        y = self.op("Clip", self.bn(self.conv(y, cin * grow, cin * grow, 3, stride, group=cin * grow, bias=False), cin * grow), *six)
        y = self.bn(self.conv(y, cin * grow, cout, 1, bias=False), cout)
        return self.op("Add", x, y) if stride == 1 and cin == cout else y

    def squeeze(self, x, c):
        s = self.op("GlobalAveragePool", x)
        s = self.op("Sigmoid", self.conv(self.relu(self.conv(s, c, c // 2, 1)), c // 2, c, 1))
        return self.op("Mul", x, s)

    def model(self, y):
        kinds = {"ids": TensorProto.INT64}
        ins = [helper.make_tensor_value_info(k, kinds.get(k, TensorProto.FLOAT), s) for k, s in self.inputs.items()]
        graph = helper.make_graph(self.nodes, "net", ins, [helper.make_tensor_value_info(y, TensorProto.FLOAT, None)], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


# ---- networks ----

def mlp(n):
    return n.op("LogSoftmax", n.dense(n.relu(n.dense(n.op("Tanh", n.dense("x", 12, 10)), 10, 8)), 8, 4), axis=-1)


def lenet(n):
    x = n.pool(n.op("Tanh", n.conv("x", 1, 4, 5)))
    x = n.pool(n.op("Tanh", n.conv(x, 4, 6, 5, pad=0)), "AveragePool")
    return n.op("Softmax", n.dense(n.relu(n.dense(n.op("Flatten", x), 6, 12)), 12, 5))


def resnet18(n):
    x = n.pool(n.relu(n.bn(n.conv("x", 3, 4, 7, 2, bias=False), 4)), k=3, stride=2, pad=1)
    for cin, cout, stride in ((4, 4, 1), (4, 4, 1), (4, 6, 2), (6, 6, 1), (6, 8, 2), (8, 8, 1), (8, 10, 2), (10, 10, 1)):
        x = n.residual(x, cin, cout, stride)
    return n.head(x, 10, 5)


def mobilenet_v2(n):
    x = n.relu(n.bn(n.conv("x", 3, 4, 3, 2, bias=False), 4))
    for cin, cout, stride in ((4, 4, 1), (4, 6, 2), (6, 6, 1), (6, 8, 2)):
        x = n.inverted(x, cin, cout, stride)
    return n.head(x, 8, 5)


def recurrent(kind, gates, directions):
    def make(n):
        hidden = 4
        w, r = n.weight(directions, gates * hidden, 3, scale=0.5), n.weight(directions, gates * hidden, hidden, scale=0.5)
        b = n.weight(directions, 2 * gates * hidden, scale=0.2)
        y, *_ = n.op(kind, "x", w, r, b, hidden_size=hidden, direction="bidirectional" if directions == 2 else "forward", outputs=2)
        y = n.op("Reshape", n.op("Transpose", y, perm=[2, 0, 1, 3]), n.ints(2, -1))
        return n.dense(y, 5 * directions * hidden, 3)
    return make


def bert(n):
    x = n.norm(n.embed("ids", 11, 8, 5), 8)
    for _ in range(2):
        x = n.block(x, 2, 5, 8, 2)
    first = n.op("Gather", x, n.const(np.int64(0)), axis=1)
    return n.dense(n.op("Tanh", n.dense(first, 8, 8)), 8, 2)


def gpt(n):
    x = n.embed("ids", 11, 8, 5)
    for _ in range(2):
        x = n.block(x, 2, 5, 8, 2, causal=True, pre=True)
    return n.op("LogSoftmax", n.dense(n.norm(x, 8), 8, 11, bias=False), axis=-1)


def unet(n):
    a = n.relu(n.conv("x", 1, 4, 3))
    b = n.relu(n.conv(n.pool(a), 4, 6, 3))
    c = n.relu(n.conv(n.pool(b), 6, 8, 3))
    up = n.op("ConvTranspose", c, n.weight(8, 6, 2, 2), n.weight(6, scale=0.1), kernel_shape=[2, 2], strides=[2, 2])
    d = n.relu(n.conv(n.op("Concat", up, b, axis=1), 12, 6, 3))
    up = n.op("Resize", d, "", n.const(np.array([1, 1, 2, 2], np.float32)), mode="linear")
    e = n.relu(n.conv(n.op("Concat", up, a, axis=1), 10, 4, 3))
    return n.op("Sigmoid", n.conv(e, 4, 1, 1))


def vgg(n):
    x = n.relu(n.conv(n.relu(n.conv("x", 3, 4, 3)), 4, 4, 3))
    x = n.relu(n.conv(n.relu(n.conv(n.pool(x), 4, 6, 3)), 6, 6, 3))
    return n.dense(n.relu(n.dense(n.op("Flatten", n.pool(x)), 24, 8)), 8, 4)


def densenet(n):
    x, c = n.conv("x", 3, 4, 3), 4
    for _ in range(3):
        y = n.conv(n.relu(n.bn(x, c)), c, 3, 3, bias=False)
        x, c = n.op("Concat", x, y, axis=1), c + 3
    x = n.pool(n.conv(n.relu(n.bn(x, c)), c, 6, 1), "AveragePool")
    return n.head(x, 6, 3)


def squeezenet(n):
    x = n.pool(n.relu(n.conv("x", 3, 6, 3)), k=3, stride=2)
    for c in (6, 8):
        s = n.relu(n.conv(x, c, 3, 1))
        x = n.op("Concat", n.relu(n.conv(s, 3, 4, 1)), n.relu(n.conv(s, 3, 4, 3)), axis=1)
    return n.op("Flatten", n.op("GlobalAveragePool", n.conv(x, 8, 4, 1)))


def inception(n):
    a, b = n.conv("x", 3, 2, 1), n.conv(n.relu(n.conv("x", 3, 3, 1)), 3, 3, 3)
    c = n.conv(n.pool("x", k=3, stride=1, pad=1), 3, 2, 1)
    d = n.conv(n.pool("x", "AveragePool", k=3, stride=1, pad=1, count_include_pad=0), 3, 2, 5)
    return n.head(n.relu(n.op("Concat", a, b, c, d, axis=1)), 9, 3)


def resnext(n):
    x = n.relu(n.conv("x", 3, 8, 3, 2))
    y = n.relu(n.bn(n.conv(n.relu(n.conv(x, 8, 8, 1)), 8, 8, 3, group=4, bias=False), 8))
    return n.head(n.relu(n.op("Add", x, n.conv(y, 8, 8, 1))), 8, 3)


def efficientnet(n):
    x = n.silu(n.bn(n.conv("x", 3, 4, 3, 2, bias=False), 4))
    y = n.silu(n.bn(n.conv(x, 4, 8, 1, bias=False), 8))
    y = n.squeeze(n.silu(n.bn(n.conv(y, 8, 8, 5, group=8, bias=False), 8)), 8)
    return n.head(n.op("Add", x, n.bn(n.conv(y, 8, 4, 1, bias=False), 4)), 4, 3)


def convnext(n):
    x = n.conv("x", 3, 6, 2, 2, pad=0)
    y = n.op("Transpose", n.conv(x, 6, 6, 7, group=6), perm=[0, 2, 3, 1])
    y = n.dense(n.gelu(n.dense(n.norm(y, 6), 6, 12)), 12, 6)
    return n.head(n.op("Add", x, n.op("Transpose", y, perm=[0, 3, 1, 2])), 6, 3)


def vit(n):
    x = n.op("Reshape", n.conv("x", 3, 8, 4, 4, pad=0), n.ints(1, 8, 4))
    x = n.op("Transpose", x, perm=[0, 2, 1])
    x = n.op("Add", n.op("Concat", n.weight(1, 1, 8, scale=0.5), x, axis=1), n.weight(5, 8, scale=0.5))
    x = n.norm(n.block(x, 1, 5, 8, 2, pre=True), 8)
    return n.dense(n.op("Gather", x, n.const(np.int64(0)), axis=1), 8, 3)


def mixer(n):
    x = n.op("Transpose", n.op("Reshape", n.conv("x", 3, 6, 4, 4, pad=0), n.ints(1, 6, 4)), perm=[0, 2, 1])
    y = n.op("Transpose", n.norm(x, 6), perm=[0, 2, 1])
    y = n.op("Transpose", n.dense(n.gelu(n.dense(y, 4, 8)), 8, 4), perm=[0, 2, 1])
    x = n.op("Add", x, y)
    x = n.op("Add", x, n.dense(n.gelu(n.dense(n.norm(x, 6), 6, 10)), 10, 6))
    return n.dense(n.op("ReduceMean", x, axes=[1], keepdims=0), 6, 3)


def tcn(n):
    x, c = "x", 2
    for d in (1, 2, 4):
        y = n.relu(n.conv(x, c, 4, 3, dilation=d, dims=1))
        x, c = (n.op("Add", x, y) if c == 4 else y), 4
    return n.dense(n.op("Flatten", x), 4 * 9, 3)


def generator(n):
    x = n.op("Reshape", n.relu(n.dense("x", 5, 24)), n.ints(2, 6, 2, 2))
    x = n.relu(n.bn(n.op("ConvTranspose", x, n.weight(6, 4, 4, 4), kernel_shape=[4, 4], strides=[2, 2], pads=[1] * 4), 4))
    return n.op("Tanh", n.op("ConvTranspose", x, n.weight(4, 1, 3, 3), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4, output_padding=[1, 1]))


def autoencoder(n):
    x = n.op("Elu", n.dense(n.op("LeakyRelu", n.dense("x", 12, 6)), 6, 3))
    return n.op("Sigmoid", n.dense(n.op("Softplus", n.dense(x, 3, 6)), 6, 12))


def group_normed(n):
    x = n.conv("x", 3, 6, 3)
    x = n.op("InstanceNormalization", x, n.weight(6, scale=0.1, shift=1), n.weight(6, scale=0.1))
    x = n.op("LpNormalization", n.op("HardSwish", x), axis=1)
    return n.op("ReduceLogSumExp", n.head(x, 6, 4), axes=[1])


NETS = {
    "mlp": (mlp, {"x": [3, 12]}), "lenet": (lenet, {"x": [1, 1, 12, 12]}), "resnet18": (resnet18, {"x": [1, 3, 20, 20]}),
    "mobilenet_v2": (mobilenet_v2, {"x": [1, 3, 12, 12]}), "lstm": (recurrent("LSTM", 4, 1), {"x": [5, 2, 3]}),
    "bilstm": (recurrent("LSTM", 4, 2), {"x": [5, 2, 3]}), "gru": (recurrent("GRU", 3, 1), {"x": [5, 2, 3]}),
    "rnn": (recurrent("RNN", 1, 2), {"x": [5, 2, 3]}), "bert": (bert, {"ids": [2, 5]}), "gpt": (gpt, {"ids": [2, 5]}),
    "unet": (unet, {"x": [1, 1, 8, 8]}), "vgg": (vgg, {"x": [1, 3, 8, 8]}), "densenet": (densenet, {"x": [1, 3, 6, 6]}),
    "squeezenet": (squeezenet, {"x": [1, 3, 9, 9]}), "inception": (inception, {"x": [1, 3, 6, 6]}), "resnext": (resnext, {"x": [1, 3, 8, 8]}),
    "efficientnet": (efficientnet, {"x": [1, 3, 8, 8]}), "convnext": (convnext, {"x": [1, 3, 8, 8]}), "vit": (vit, {"x": [1, 3, 8, 8]}),
    "mixer": (mixer, {"x": [1, 3, 8, 8]}), "tcn": (tcn, {"x": [1, 2, 9]}), "generator": (generator, {"x": [2, 5]}),
    "autoencoder": (autoencoder, {"x": [3, 12]}), "normed": (group_normed, {"x": [2, 3, 5, 5]}),
}


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for seed, (name, (make, inputs)) in enumerate(NETS.items()):
        n = Net(seed, **inputs)
        save(n.model(make(n)), os.path.join(folder, name + ".onnx"))


main()
