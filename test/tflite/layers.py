"""Convolutions, fully connected layers, products of matrices, pools, softmax, normalizations, sums over axes."""
import numpy as np
from tflitefile import NONE, RELU, RELU6, SAME, VALID, Net, Q
from .maths import FUNCTION, TABLE, WIDE, floats, ints, single

ZERO = {"i8": -5, "u8": 120, "i16": 0}


def act_q(kind, scale):
    return Q(scale / (256 if kind == "i16" else 1), ZERO[kind])


class Layer:
    """Weights, bias and result of a layer that adds up n products, in one of the kinds."""

    def __init__(self, kind, n, channels, rng, axis=0, per_channel=True, bias=True):
        self.kind, self.rng = kind, rng
        if kind == "f32":
            self.x, self.y = None, None
            return
        self.x = act_q(kind, 0.04)
        scales = rng.uniform(0.005, 0.02, channels) if per_channel and kind != "u8" else 0.012
        self.w = Q(scales, 128 if kind == "u8" else 0, axis)
        self.b = Q(np.float32(self.x.scale) * np.asarray(scales, np.float32), 0, 0)
        wide = 32768 / 2 if kind == "i16" else 74
        self.y = act_q(kind, 1)
        self.y.scale = float(self.x.scale * 0.0125 * 74 * wide * np.sqrt(n) / (8000 if kind == "i16" else 50))

    def weights(self, net, shape):
        if self.kind == "f32":
            return net.const(floats(self.rng, shape, -1, 1))
        if self.kind == "u8":
            return net.const(ints(self.rng, "u8", shape), self.w)
        return net.const(ints(self.rng, "i8", shape, -127), self.w)

    def bias(self, net, n):
        if self.kind == "f32":
            return net.const(floats(self.rng, (n,), -1, 1))
        if self.kind == "i16":
            return net.const(ints(self.rng, "i64", (n,), -100000, 100000), self.b)
        return net.const(ints(self.rng, "i32", (n,), -3000, 3000), self.b)

    def data(self, shape):
        return floats(self.rng, shape, -2, 2) if self.kind == "f32" else ints(self.rng, self.kind, shape)


def conv(Case, rng):
    #        name        n  h   w  c  oc kernel  stride dilation padding activation
    shapes = (("same", 1, 7, 9, 3, 5, (3, 3), (1, 1), (1, 1), SAME, NONE), ("valid", 2, 8, 6, 4, 6, (3, 2), (1, 1), (1, 1), VALID, RELU),
              ("stride", 1, 9, 8, 3, 8, (3, 3), (2, 2), (1, 1), SAME, RELU6), ("dilated", 1, 11, 10, 2, 3, (3, 3), (1, 1), (2, 3), SAME, NONE),
              ("odd", 1, 10, 7, 3, 4, (2, 4), (3, 2), (1, 1), SAME, RELU), ("point", 1, 5, 5, 8, 16, (1, 1), (1, 1), (1, 1), VALID, RELU6))
    for kind in ("f32", "i8", "i16", "u8"):
        for tag, n, h, w, c, oc, k, s, d, pad, act in shapes:
            if kind == "i16" and act == RELU6:
                act = RELU
            net = Net()
            layer = Layer(kind, k[0] * k[1] * c, oc, rng)
            x = layer.data((n, h, w, c))
            ins = [net.input(kind, x.shape, layer.x), layer.weights(net, (oc, *k, c)), layer.bias(net, oc)]
            net.result(net.op("CONV_2D", ins, [(kind, layer.y)], "Conv2D", padding=pad, stride_h=s[0], stride_w=s[1], dilation_h_factor=d[0],
                              dilation_w_factor=d[1], fused_activation_function=act, version=4 if kind == "i16" else 1))
            yield Case(f"conv_{tag}_{kind}", net, [[x]], compiled=tag in ("same", "stride"), **(WIDE if kind == "i16" else {}))
    net = Net()
    layer = Layer("i8", 36, 4, rng)
    x = layer.data((1, 6, 6, 8))
    ins = [net.input("i8", x.shape, layer.x), layer.weights(net, (4, 3, 3, 4)), layer.bias(net, 4)]
    net.result(net.op("CONV_2D", ins, [("i8", layer.y)], "Conv2D", padding=SAME, stride_h=1, stride_w=1, dilation_h_factor=1, dilation_w_factor=1, version=6))
    yield Case("conv_groups_i8", net, [[x]])
    for tag, pad, s in (("valid", VALID, 1), ("same", SAME, 2)):
        net = Net()
        x = floats(rng, (1, 4, 6, 5, 2))
        ins = [net.input("f32", x.shape), net.const(floats(rng, (2, 3, 3, 2, 4), -1, 1)), net.const(floats(rng, (4,)))]
        net.result(net.op("CONV_3D", ins, ["f32"], "Conv3D", padding=pad, stride_d=1, stride_h=s, stride_w=s, dilation_d_factor=1, dilation_h_factor=1,
                          dilation_w_factor=1, fused_activation_function=RELU))
        yield Case(f"conv3d_{tag}_f32", net, [[x]])


def depthwise(Case, rng):
    shapes = (("same", 1, 7, 9, 6, 1, (3, 3), (1, 1), (1, 1), SAME, NONE), ("multiplied", 1, 6, 6, 3, 4, (3, 3), (1, 1), (1, 1), VALID, RELU),
              ("stride", 2, 9, 8, 8, 1, (3, 3), (2, 2), (1, 1), SAME, RELU6), ("dilated", 1, 11, 10, 4, 1, (3, 2), (1, 1), (2, 2), SAME, NONE))
    for kind in ("f32", "i8", "i16", "u8"):
        for tag, n, h, w, c, m, k, s, d, pad, act in shapes:
            if kind == "i16" and act == RELU6:
                act = RELU
            net = Net()
            layer = Layer(kind, k[0] * k[1], c * m, rng, axis=3)
            x = layer.data((n, h, w, c))
            ins = [net.input(kind, x.shape, layer.x), layer.weights(net, (1, *k, c * m)), layer.bias(net, c * m)]
            net.result(net.op("DEPTHWISE_CONV_2D", ins, [(kind, layer.y)], "DepthwiseConv2D", padding=pad, stride_h=s[0], stride_w=s[1],
                              depth_multiplier=m, dilation_h_factor=d[0], dilation_w_factor=d[1], fused_activation_function=act))
            yield Case(f"depthwise_{tag}_{kind}", net, [[x]], compiled=tag in ("same", "multiplied"), **(WIDE if kind == "i16" else {}))


def transposed(Case, rng):
    for kind in ("f32", "i8", "i16", "u8"):
        for tag, s, pad, h, bias in (("same", 2, SAME, 5, True), ("valid", 2, VALID, 4, True), ("unit", 1, SAME, 5, False), ("three", 3, SAME, 4, True)):
            net = Net()
            layer = Layer(kind, 9 * 3 / s, 4, rng)
            x = layer.data((1, h, h + 1, 3))
            out = [1, h * s, (h + 1) * s, 4] if pad == SAME else [1, (h - 1) * s + 3, h * s + 3, 4]
            ins = [net.shape_of(out), layer.weights(net, (4, 3, 3, 3)), net.input(kind, x.shape, layer.x)]
            if bias:
                ins.append(layer.bias(net, 4))
            net.result(net.op("TRANSPOSE_CONV", ins, [(kind, layer.y)], "TransposeConv", padding=pad, stride_h=s, stride_w=s, version=3 if bias else 1))
            yield Case(f"transpose_conv_{tag}_{kind}", net, [[x]], compiled=tag == "same")


def fully(Case, rng):
    for kind in ("f32", "i8", "i16", "u8"):
        for tag, shape, n, keep, act, per_channel, bias in (("plain", (3, 20), 7, False, NONE, False, True), ("relu", (1, 33), 16, False, RELU, False, True),
                                                            ("keep", (2, 3, 12), 5, True, NONE, False, True), ("flat", (2, 2, 3, 4), 5, False, NONE, False, False),
                                                            ("channels", (3, 20), 6, False, NONE, True, True)):
            if per_channel and kind not in ("i8", "i16"):
                continue
            net = Net()
            depth = shape[-1]
            layer = Layer(kind, depth, n, rng, per_channel=per_channel)
            x = layer.data(shape)
            ins = [net.input(kind, x.shape, layer.x), layer.weights(net, (n, depth)), layer.bias(net, n) if bias else -1]
            net.result(net.op("FULLY_CONNECTED", ins, [(kind, layer.y)], "FullyConnected", fused_activation_function=act, keep_num_dims=keep))
            yield Case(f"fully_connected_{tag}_{kind}", net, [[x]], compiled=tag == "plain")
    # Weights of bytes, or of nibbles, with activations of floats: each row of them is rounded to bytes while the model runs.
    for kind in ("i8",):
        net = Net()
        x = floats(rng, (3, 20))
        w = net.const(ints(rng, "i8", (7, 20), -127), Q(0.02, 0))
        net.result(net.op("FULLY_CONNECTED", [net.input("f32", x.shape), w, net.const(floats(rng, (7,)))], ["f32"], "FullyConnected"))
        yield Case(f"fully_connected_hybrid_{kind}", net, [[x]])
    for kind in ("f32", "i8", "i16"):
        for tag, a, b, ax, ay in (("plain", (2, 3, 5), (2, 5, 4), False, False), ("broadcast", (2, 1, 3, 5), (3, 5, 4), False, False),
                                  ("turned", (2, 5, 3), (2, 4, 5), True, True), ("right", (2, 3, 5), (2, 4, 5), False, True)):
            net = Net()
            qa, qb, qc = (None, None, None) if kind == "f32" else (act_q(kind, 0.04), act_q(kind, 0.03), act_q(kind, 0.2))
            if kind == "i16":
                qc = Q(0.03)
            data = [floats(rng, a), floats(rng, b)] if kind == "f32" else [ints(rng, kind, a), ints(rng, kind, b)]
            ins = [net.input(kind, a, qa), net.input(kind, b, qb)]
            net.result(net.op("BATCH_MATMUL", ins, [(kind, qc)], "BatchMatMul", adj_x=ax, adj_y=ay, version=2))
            yield Case(f"batch_matmul_{tag}_{kind}", net, [data], compiled=tag == "plain")


def pools(Case, rng):
    shapes = (("same", (1, 7, 9, 3), (3, 3), (2, 2), SAME, NONE), ("valid", (2, 6, 6, 4), (2, 3), (1, 2), VALID, NONE), ("relu", (1, 5, 5, 2), (2, 2), (2, 2), SAME, RELU6))
    for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"):
        for kind in ("f32", "i8", "i16", "u8"):
            if op[0] == "L" and kind != "f32":
                continue
            for tag, shape, k, s, pad, act in shapes:
                net = Net()
                q = None if kind == "f32" else act_q(kind, 0.05)
                x = floats(rng, shape) if kind == "f32" else ints(rng, kind, shape)
                net.result(net.op(op, [net.input(kind, shape, q)], [(kind, q)], "Pool2D", padding=pad, filter_height=k[0], filter_width=k[1], stride_h=s[0],
                                  stride_w=s[1], fused_activation_function=NONE if kind == "i16" else act))
                yield Case(f"{op.lower()[:-3]}_{tag}_{kind}", net, [[x]], compiled=tag == "same")


def rows(Case, rng):
    x = floats(rng, (3, 5, 11), -6, 6)
    for beta in (1.0, 0.5):
        yield single(Case, f"softmax_f32_{beta}", "SOFTMAX", [x], "f32", options="Softmax", beta=beta)
    yield single(Case, "softmax_vector", "SOFTMAX", [floats(rng, (9,))], "f32", options="Softmax", beta=1.0)
    yield single(Case, "log_softmax_f32", "LOG_SOFTMAX", [x], "f32", options="LogSoftmax")
    yield single(Case, "l2_normalization_f32", "L2_NORMALIZATION", [x], "f32", options="L2Norm")
    for kind, zero, out in (("i8", 3, Q(1 / 256, -128)), ("u8", 130, Q(1 / 256, 0))):
        for s in (0.05, 0.3):
            yield single(Case, f"softmax_{kind}_{s}", "SOFTMAX", [ints(rng, kind, (8, 30))], (kind, out), Q(s, zero), options="Softmax", beta=1.0, compiled=s == 0.05)
        yield single(Case, f"log_softmax_{kind}", "LOG_SOFTMAX", [ints(rng, kind, (8, 30))], (kind, Q(16 / 256, 127 if kind == "i8" else 255)), Q(0.05, zero),
                     options="LogSoftmax")
        yield single(Case, f"l2_normalization_{kind}", "L2_NORMALIZATION", [ints(rng, kind, (8, 30))], (kind, Q(1 / 128, 128 if kind == "u8" else 0)), Q(0.05, zero),
                     options="L2Norm", **FUNCTION)
    yield single(Case, "softmax_i8_i16", "SOFTMAX", [ints(rng, "i8", (8, 30))], ("i16", Q(1 / 65536, -32768)), Q(0.05, 3), options="Softmax", beta=1.0)
    yield single(Case, "softmax_i16", "SOFTMAX", [ints(rng, "i16", (8, 30))], ("i16", Q(1 / 32768)), Q(0.0003, 0), options="Softmax", beta=1.0, **{**TABLE, "steps": 6, "share": 0.7})
    # The reference kernel leaves the last channel of each window out.
    yield single(Case, "local_response", "LOCAL_RESPONSE_NORMALIZATION", [floats(rng, (1, 3, 3, 9))], "f32", options="LocalResponseNormalization", radius=2, bias=1.0,
                 alpha=0.3, beta=0.75, kernels="builtin")


def folds(Case, rng):
    for op in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_ANY", "REDUCE_ALL"):
        for tag, axes, keep in (("last", [-1], False), ("middle", [1, 2], True), ("all", [0, 1, 2, 3], False)):
            kinds = ("bool",) if op[-3:] in ("ANY", "ALL") else ("f32", "i8", "i16", "i32") if op != "REDUCE_PROD" else ("f32", "i32")
            for kind in kinds:
                net = Net()
                shape = (2, 4, 3, 5)
                x = floats(rng, shape) if kind == "f32" else rng.random(shape) < (0.9 if op[-3:] == "ALL" else 0.1) if kind == "bool" else ints(rng, kind, shape, *((-3, 3) if kind == "i32" else ()))
                qx, qy = None, None
                if kind in ("i8", "i16"):
                    qx, qy = act_q(kind, 0.05), act_q(kind, {"MEAN": 0.03, "SUM": 0.6}.get(op, 0.05))
                net.result(net.op(op, [net.input(kind, shape, qx), net.shape_of(axes)], [(kind, qy)], "Reducer", keep_dims=keep))
                # The reference kernel of a quantized sum reads beyond its numbers.
                how = {"kernels": "builtin", "steps": 1, "share": 0.25, "why": "sums are multiplied and moved in f32 there, in another order"} if op == "SUM" and qx else {}
                yield Case(f"{op.lower()}_{tag}_{kind}", net, [[x]], compiled=op == "MEAN" and tag == "middle", **how)
    net = Net()
    x = ints(rng, "i8", (1, 5, 5, 8))
    net.result(net.op("MEAN", [net.input("i8", x.shape, Q(0.05, -5)), net.shape_of([1, 2])], [("i8", Q(0.05, -5))], "Reducer"))
    yield Case("mean_same_scale_i8", net, [[x]])
    net = Net()
    x = ints(rng, "u8", (1, 5, 5, 8))
    net.result(net.op("MEAN", [net.input("u8", x.shape, Q(0.05, 120)), net.shape_of([1, 2])], [("u8", Q(0.03, 130))], "Reducer", keep_dims=True))
    yield Case("mean_u8", net, [[x]])


def cases(Case, rng):
    for part in (conv, depthwise, transposed, fully, pools, rows, folds):
        yield from part(Case, rng)
