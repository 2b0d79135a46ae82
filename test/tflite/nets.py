"""The four networks of MLPerf Tiny by their architectures, with seeded weights: as floats, and in full int8 with parameters from the ranges of the float one."""
import numpy as np
from tflitefile import NONE, RELU, SAME, VALID, Net, Q, ask, judge_of


class Maker:
    """Writes a network in floats, or, given the range of every activation, in int8. Activations are (tensor, parameters, channels)."""

    def __init__(self, seed, ranges=None):
        self.net, self.rng, self.ranges = Net(), np.random.default_rng(seed), ranges
        self.kind = "i8" if ranges else "f32"

    def params(self):
        """Quantization of the next activation."""
        if not self.ranges:
            return None
        lo, hi = self.ranges[len(self.net.main.tensors)]
        lo, hi = min(lo, 0.0), max(hi, 1e-3)
        scale = (hi - lo) / 255
        return Q(scale, int(np.clip(np.round(-128 - lo / scale), -128, 127)))

    def input(self, shape):
        q = self.params()
        return self.net.input(self.kind, shape, q), q, shape[-1]

    def weights(self, shape, axis, inputs, q, per_channel=True):
        """Weights drawn for so many inputs, and a bias; numbers of both tensors. The float tensors and the bytes come from the same draws."""
        w = (self.rng.normal(0, np.sqrt(2 / inputs), shape)).astype(np.float32)
        b = self.rng.normal(0, 0.1, shape[axis]).astype(np.float32)
        if not self.ranges:
            return self.net.const(w), self.net.const(b)
        over = tuple(i for i in range(len(shape)) if i != axis)
        scale = (np.abs(w).max(over) if per_channel else np.full(shape[axis], np.abs(w).max())) / 127
        full = scale.reshape([-1 if i == axis else 1 for i in range(len(shape))])
        bytes_ = np.clip(np.round(w / full), -127, 127).astype(np.int8)
        each = scale.astype(np.float32) if per_channel else scale[:1].astype(np.float32)
        bq = np.float32(q.scale) * each
        return (self.net.const(bytes_, Q(each, 0, axis)), self.net.const(np.round(b / (np.float64(q.scale) * scale)).astype(np.int32), Q(bq, 0, 0)))

    def conv(self, x, n, k, stride=1, act=RELU, pad=SAME):
        t, q, c = x
        k = k if isinstance(k, tuple) else (k, k)
        w, b = self.weights((n, *k, c), 0, k[0] * k[1] * c, q)
        p = self.params()
        y = self.net.op("CONV_2D", [t, w, b], [(self.kind, p)], "Conv2D", padding=pad, stride_h=stride, stride_w=stride, dilation_h_factor=1, dilation_w_factor=1,
                        fused_activation_function=act)
        return y, p, n

    def depthwise(self, x, stride=1):
        t, q, c = x
        w, b = self.weights((1, 3, 3, c), 3, 9, q)
        p = self.params()
        y = self.net.op("DEPTHWISE_CONV_2D", [t, w, b], [(self.kind, p)], "DepthwiseConv2D", padding=SAME, stride_h=stride, stride_w=stride, depth_multiplier=1,
                        dilation_h_factor=1, dilation_w_factor=1, fused_activation_function=RELU)
        return y, p, c

    def dense(self, x, n, act=NONE):
        t, q, c = x
        w, b = self.weights((n, c), 0, c, q, False)
        p = self.params()
        return self.net.op("FULLY_CONNECTED", [t, w, b], [(self.kind, p)], "FullyConnected", fused_activation_function=act), p, n

    def add(self, x, y):
        p = self.params()
        return self.net.op("ADD", [x[0], y[0]], [(self.kind, p)], "Add", fused_activation_function=RELU), p, x[2]

    def pool(self, x, h, w):
        y = self.net.op("AVERAGE_POOL_2D", [x[0]], [(self.kind, x[1])], "Pool2D", padding=VALID, stride_h=h, stride_w=w, filter_height=h, filter_width=w)
        return y, x[1], x[2]

    def flat(self, x):
        return self.net.op("RESHAPE", [x[0], self.net.shape_of([-1, x[2]])], [(self.kind, x[1])], "Reshape", new_shape=[-1, x[2]]), x[1], x[2]

    def softmax(self, x):
        p = Q(1 / 256, -128) if self.ranges else None
        return self.net.op("SOFTMAX", [x[0]], [(self.kind, p)], "Softmax", beta=1.0), p, x[2]


def keywords(m):
    """DS-CNN: spectrograms of 49 by 10, twelve words."""
    x = m.conv(m.input((1, 49, 10, 1)), 64, (10, 4), 2)
    for _ in range(4):
        x = m.conv(m.depthwise(x), 64, 1)
    return m.softmax(m.dense(m.flat(m.pool(x, 25, 5)), 12))


def wakewords(m):
    """MobileNetV1, a quarter as wide: images of 96 by 96, a person or none."""
    x = m.conv(m.input((1, 96, 96, 3)), 8, 3, 2)
    for n, stride in ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *((128, 1),) * 5, (256, 2), (256, 1)):
        x = m.conv(m.depthwise(x, stride), n, 1)
    return m.softmax(m.dense(m.flat(m.pool(x, 3, 3)), 2))


def images(m):
    """ResNet-8: images of 32 by 32, ten classes."""
    x = m.conv(m.input((1, 32, 32, 3)), 16, 3)
    x = m.add(m.conv(m.conv(x, 16, 3), 16, 3, act=NONE), x)
    for n in (32, 64):
        y = m.conv(m.conv(x, n, 3, 2), n, 3, act=NONE)
        x = m.add(y, m.conv(x, n, 1, 2, act=NONE))
    return m.softmax(m.dense(m.flat(m.pool(x, 8, 8)), 10))


def anomalies(m):
    """An autoencoder: 640 numbers through eight, and back."""
    x = m.input((1, 640))
    for n in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        x = m.dense(x, n, RELU)
    return m.dense(x, 640)


def measured(build, seed, shape, rng):
    """(the float network, ranges of its tensors over eight inputs)."""
    m = Maker(seed)
    m.net.result(build(m)[0])
    judge = judge_of(m.net.pack(), keep=True)
    judge.allocate_tensors()
    lo, hi = {}, {}
    for _ in range(8):
        ask(judge, [rng.uniform(-1, 1, shape).astype(np.float32)])
        for i, d in enumerate(judge.get_tensor_details()):
            if d["dtype"] == np.float32 and d["shape"].size:
                t = judge.get_tensor(d["index"])
                lo[i], hi[i] = min(lo.get(i, 0.0), float(t.min())), max(hi.get(i, 0.0), float(t.max()))
    return m.net, {i: (lo[i], hi[i]) for i in lo}


def cases(Case, rng):
    for name, build, shape in (("keywords", keywords, (1, 49, 10, 1)), ("wakewords", wakewords, (1, 96, 96, 3)), ("images", images, (1, 32, 32, 3)),
                               ("anomalies", anomalies, (1, 640))):
        seed = int(rng.integers(1 << 30))
        net, ranges = measured(build, seed, shape, rng)
        data = [[rng.uniform(-1, 1, shape).astype(np.float32)] for _ in range(2)]
        yield Case(f"{name}_f32", net, data, rtol=1e-4, atol=1e-4, compiled=True)
        m = Maker(seed, ranges)
        m.net.result(build(m)[0])
        q = m.net.main.tensors[m.net.main.inputs[0]].quantization
        as_bytes = [[np.clip(np.round(x / q.scale[0]) + q.zeroPoint[0], -128, 127).astype(np.int8)] for [x] in data]
        # Reference and built-in kernels of layers that only multiply round some sums differently; ingot agrees with the built-in ones.
        yield Case(f"{name}_i8", m.net, as_bytes, compiled=True, kernels="builtin" if name == "anomalies" else "ref")
