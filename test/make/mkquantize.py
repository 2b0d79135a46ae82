"""Writes networks to quantize, as exporters write them, with calibration data.

mkquantize.py OUT writes NAME.onnx, NAME.npz (examples), NAME_held.npz (other examples) and NAME_ort.onnx.
NAME_ort.onnx comes from ONNX Runtime's quantizer with the same examples: static, QDQ, a scale per channel, after its
pre-processing.

The networks are MobileNetV2, ResNet-18 and bottlenecks of ResNeXt, at 64x64 and half the width to save time, with unfolded batch
normalization.
There are also BERT-tiny (2 layers of 128), products of matrices of 512, and the digit classifier of models/ with its own images.
Weights are random with spreads like trained ones: different ranges per channel, and batch statistics that match the activations.
Images have the spectrum of photographs.
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

EXAMPLES, HELD = 20, 8


class Net:
    """Collects nodes and initializers; computes every value on a batch when it is added, so that batch statistics are right."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.inits, self.names = [], [], 0

    def name(self, stem):
        self.names += 1
        return f"{stem}_{self.names}"

    def tensor(self, array, stem="w"):
        name = self.name(stem)
        self.inits.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def op(self, kind, *inputs, **attrs):
        out = self.name(kind.lower())
        self.nodes.append(helper.make_node(kind, list(inputs), [out], f"/{kind}_{self.names}", **attrs))
        return out

    def conv(self, x, cin, cout, k=1, stride=1, group=1, act=None, gain=1.0):
        fan = cin // group * k * k
        w = self.rng.standard_t(6, (cout, cin // group, k, k)) * gain / np.sqrt(fan / 2)
        w *= np.exp(0.5 * self.rng.standard_normal((cout, 1, 1, 1)))
        y = self.op("Conv", x, self.tensor(w.astype(np.float32)), kernel_shape=[k, k], strides=[stride] * 2, pads=[k // 2] * 4, group=group)
        spread = np.sqrt((w.reshape(cout, -1) ** 2).sum(1) / 2)
        v = [np.exp(0.2 * self.rng.standard_normal(cout)), 0.3 * self.rng.standard_normal(cout), 0.2 * self.rng.standard_normal(cout), spread**2 + 1e-3]
        y = self.op("BatchNormalization", y, *(self.tensor(a.astype(np.float32), "bn") for a in v))
        if act == "relu6":
            return self.op("Clip", y, self.tensor(np.float32(0), "lo"), self.tensor(np.float32(6), "hi"))
        return self.op("Relu", y) if act else y

    def dense(self, x, n, m, act=None):
        y = self.op("MatMul", x, self.tensor((self.rng.standard_t(6, (n, m)) / np.sqrt(1.5 * n)).astype(np.float32)))
        y = self.op("Add", y, self.tensor((0.1 * self.rng.standard_normal(m)).astype(np.float32), "b"))
        if act:
            half = self.op("Mul", y, self.tensor(np.float32(0.5), "c"))
            e = self.op("Erf", self.op("Div", y, self.tensor(np.float32(2**0.5), "c")))
            y = self.op("Mul", half, self.op("Add", e, self.tensor(np.float32(1), "c")))
        return y

    def norm(self, x, n):
        return self.op("LayerNormalization", x, self.tensor(np.exp(0.1 * self.rng.standard_normal(n)).astype(np.float32)),
                       self.tensor((0.1 * self.rng.standard_normal(n)).astype(np.float32)), axis=-1)

    def write(self, path, inputs, out, shape):
        graph = helper.make_graph(self.nodes, "net", inputs, [helper.make_tensor_value_info(out, TensorProto.FLOAT, shape)], self.inits)
        onnx.save(onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)), path)


def images(rng, n, side=64):
    f = np.hypot(*np.meshgrid(np.fft.fftfreq(side), np.fft.fftfreq(side)))
    f[0, 0] = f[0, 1]
    noise = np.fft.ifft2(np.fft.fft2(rng.standard_normal((n, 3, side, side))) / f).real
    return ((noise - noise.mean((1, 2, 3), keepdims=True)) / noise.std((1, 2, 3), keepdims=True)).astype(np.float32)


def resnet18(path):
    n = Net(1)
    x = n.op("MaxPool", n.conv("x", 3, 32, 7, 2, act="relu"), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    cin = 32
    for stage, c in enumerate((32, 64, 128, 256)):
        for block in range(2):
            s = 2 if stage and not block else 1
            y = n.conv(n.conv(x, cin, c, 3, s, act="relu"), c, c, 3, gain=0.5)
            x = n.op("Relu", n.op("Add", y, n.conv(x, cin, c, 1, s) if s > 1 or cin != c else x))
            cin = c
    head(n, x, cin, path)


def resnext(path, groups=32):
    """Bottlenecks of ResNeXt (32x4d), one from each of the first three stages: groups of 4, 8 and 16 channels."""
    n = Net(7)
    x, cin = n.op("MaxPool", n.conv("x", 3, 32, 7, 2, act="relu"), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4), 32
    for stage, each in enumerate((4, 8, 16)):
        wide = groups * each
        for block in range(2):
            s = 2 if stage and not block else 1
            y = n.conv(n.conv(n.conv(x, cin, wide, act="relu"), wide, wide, 3, s, groups, act="relu"), wide, wide // 2, gain=0.5)
            x = n.op("Relu", n.op("Add", y, x if block else n.conv(x, cin, wide // 2, 1, s)))
            cin = wide // 2
    head(n, x, cin, path)


def mobilenet(path):
    n = Net(2)
    x, cin = n.conv("x", 3, 16, 3, 2, act="relu6"), 16
    for t, c, count, s in ((1, 8, 1, 1), (6, 12, 2, 2), (6, 16, 3, 2), (6, 32, 4, 2), (6, 48, 3, 1), (6, 80, 3, 2), (6, 160, 1, 1)):
        for i in range(count):
            step, wide = s if i == 0 else 1, cin * t
            y = n.conv(x, cin, wide, act="relu6") if t > 1 else x
            y = n.conv(n.conv(y, wide, wide, 3, step, wide, act="relu6"), wide, c)
            x = n.op("Add", x, y) if step == 1 and cin == c else y
            cin = c
    head(n, n.conv(x, cin, 320, act="relu6"), 320, path)


def head(n, x, c, path):
    x = n.op("Flatten", n.op("GlobalAveragePool", x))
    y = n.op("Gemm", x, n.tensor((n.rng.standard_normal((100, c)) / np.sqrt(c)).astype(np.float32)), n.tensor(np.zeros(100, np.float32)), transB=1)
    n.write(path, [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, 64, 64])], y, ["batch", 100])


def bert(path, words=1000, length=32, wide=128, heads=2):
    n = Net(3)
    ints = lambda *v: n.tensor(np.array(v, np.int64), "shape")  # noqa: E731
    table = n.tensor((n.rng.standard_normal((words, wide)) * 0.5).astype(np.float32))
    x = n.norm(n.op("Add", n.op("Gather", table, "ids"), n.tensor((n.rng.standard_normal((length, wide)) * 0.3).astype(np.float32))), wide)
    for _ in range(2):
        split = lambda v, perm: n.op("Transpose", n.op("Reshape", v, ints(0, length, heads, wide // heads)), perm=perm)  # noqa: E731
        q, k, v = (split(n.dense(x, wide, wide), perm) for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        p = n.op("Softmax", n.op("Div", n.op("MatMul", q, k), n.tensor(np.float32(8), "c")), axis=-1)
        y = n.op("Reshape", n.op("Transpose", n.op("MatMul", p, v), perm=[0, 2, 1, 3]), ints(0, length, wide))
        x = n.norm(n.op("Add", x, n.dense(y, wide, wide)), wide)
        x = n.norm(n.op("Add", x, n.dense(n.dense(x, wide, 4 * wide, act=True), 4 * wide, wide)), wide)
    n.write(path, [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", length])], n.dense(x, wide, 8), ["batch", length, 8])
    return lambda rng, count: {"ids": rng.integers(0, words, (count, length))}


def dense(path, wide=512):
    n, x = Net(4), "x"
    for _ in range(4):
        x = n.op("Relu", n.dense(x, wide, wide))
    n.write(path, [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", wide])], n.dense(x, wide, 64), ["batch", 64])
    return lambda rng, count: {"x": rng.standard_normal((count, wide), np.float32)}


def old(path, opset=11):
    """The style of exporters of 2019: weights are inputs too (IR version 3), operators of opset 11, in which QuantizeLinear has
    no axis."""
    n = Net(5)
    x = n.op("Relu", n.op("Conv", "x", n.tensor(n.rng.standard_normal((8, 3, 3, 3)).astype(np.float32)), n.tensor(np.zeros(8, np.float32)), pads=[1] * 4))
    x = n.op("Relu", n.op("Conv", x, n.tensor(n.rng.standard_normal((16, 8, 3, 3)).astype(np.float32)), strides=[2, 2]))
    y = n.op("Gemm", n.op("Flatten", n.op("GlobalAveragePool", x)), n.tensor(n.rng.standard_normal((16, 10)).astype(np.float32)), n.tensor(np.zeros(10, np.float32)))
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 16])] + [helper.make_tensor_value_info(i.name, TensorProto.FLOAT, i.dims) for i in n.inits]
    graph = helper.make_graph(n.nodes, "net", inputs, [helper.make_tensor_value_info(y, TensorProto.FLOAT, [1, 10])], n.inits)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=3), path)
    return lambda rng, count: {"x": rng.standard_normal((count, 3, 16, 16), np.float32)}


def shared(path):
    """Weights as Constant nodes, one of them read by four convolutions with a normalization after each; a long name, as
    exporters join the names of fused nodes."""
    n = Net(6)
    w = n.rng.standard_normal((16, 16, 3, 3)).astype(np.float32) / 12
    n.nodes.append(helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(w)))
    n.nodes.append(helper.make_node("Constant", [], ["v"], value=numpy_helper.from_array(w[::-1].copy())))
    stats = [n.tensor(a.astype(np.float32), "bn") for a in (np.ones(16), np.zeros(16), np.zeros(16), np.full(16, 2.0))]
    x = "x"
    for _ in range(4):
        x = n.op("Relu", n.op("Conv", x, "w", pads=[1] * 4))
    n.nodes.append(helper.make_node("Relu", [x], ["é".join(["model/block/relu"] * 20)], "last"))
    x = n.nodes[-1].output[0]
    y = n.op("BatchNormalization", n.op("Conv", x, "v"), *stats)
    n.write(path, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16, 8, 8])], y, [1, 16, 6, 6])
    return lambda rng, count: {"x": rng.standard_normal((count, 16, 8, 8), np.float32)}


def digits(path, root):
    with open(os.path.join(root, "models", "digits.onnx"), "rb") as f, open(path, "wb") as to:
        to.write(f.read())
    raw = np.fromfile(os.path.join(root, "models", "digits_test.bin"), np.uint8)
    n = len(raw) // 65
    data = {"image": (raw[:64 * n].reshape(n, 1, 8, 8) / 16).astype(np.float32), "label": raw[64 * n:].astype(np.int64)}
    return {k: v[:60] for k, v in data.items()}, {k: v[60:] for k, v in data.items()}


class Reader(CalibrationDataReader):
    def __init__(self, data):
        self.rows = iter([{k: v[i:i + 1] for k, v in data.items()} for i in range(len(next(iter(data.values()))))])

    def get_next(self):
        return next(self.rows, None)


def main(out):
    os.makedirs(out, exist_ok=True)
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    for name, make in (("resnet18", resnet18), ("mobilenet", mobilenet), ("resnext", resnext), ("bert", bert), ("dense", dense), ("old", old), ("shared", shared), ("digits", None)):
        path = os.path.join(out, name)
        if make:
            gives = make(path + ".onnx") or (lambda rng, count: {"x": images(rng, count)})
            parts = [gives(np.random.default_rng(seed), count) for seed, count in ((10, EXAMPLES), (11, HELD))]
        else:
            parts = digits(path + ".onnx", root)
        for part, end in zip(parts, ("", "_held")):
            np.savez(path + end, **part)
        if name in ("dense", "old", "shared"):
            continue
        quant_pre_process(path + ".onnx", path + "_pre.onnx", skip_symbolic_shape=True)
        quantize_static(path + "_pre.onnx", path + "_ort.onnx", Reader({k: v for k, v in parts[0].items() if k != "label"}), quant_format=QuantFormat.QDQ, per_channel=True,
                        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)


if __name__ == "__main__":
    main(sys.argv[1])
