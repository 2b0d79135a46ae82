"""Weights in fewer bits than what they meet: bytes and halves of bytes against floats (dynamic range), f16, and packed ones of 4 bits."""
import numpy as np
from tflitefile import NONE, RELU, SAME, Net, Q
from .maths import floats, ints


def packed(values):
    """Two numbers of 4 bits in a byte, the first in the lower half."""
    flat = values.reshape(-1).astype(np.int64) & 15
    flat = np.concatenate([flat, np.zeros(flat.size % 2, np.int64)])
    return (flat[::2] | flat[1::2] << 4).astype(np.uint8)


def const4(net, values, q):
    t = net.const(packed(values), q, kind="i4")
    net.graph.tensors[t].shape = list(values.shape)
    return t


def window(net, code, kind, x, w, bias, **more):
    net.result(net.op(code, [net.input("f32", x.shape), w, net.const(bias)], ["f32"], kind, padding=SAME, stride_h=1, stride_w=1, dilation_h_factor=1,
                      dilation_w_factor=1, fused_activation_function=RELU, **more))


def hybrid(Case, rng):
    for tag, scale in (("tensor", 0.02), ("channels", rng.uniform(0.005, 0.02, 6))):
        net, x = Net(), floats(rng, (2, 7, 6, 4), -2, 3)
        window(net, "CONV_2D", "Conv2D", x, net.const(ints(rng, "i8", (6, 3, 3, 4), -127), Q(scale)), floats(rng, (6,)))
        yield Case(f"conv_hybrid_{tag}", net, [[x]], rtol=1e-3, atol=1e-3, compiled=True)
    net, x = Net(), floats(rng, (1, 7, 6, 4), -2, 3)
    w = net.const(ints(rng, "i8", (1, 3, 3, 4), -127), Q(rng.uniform(0.005, 0.02, 4), 0, 3))
    window(net, "DEPTHWISE_CONV_2D", "DepthwiseConv2D", x, w, floats(rng, (4,)), depth_multiplier=1)
    yield Case("depthwise_hybrid", net, [[x]], rtol=1e-3, atol=1e-3)
    for tag, shape, keep, centred, scale in (("rows", (3, 20), False, False, 0.02), ("keep", (2, 3, 20), True, False, 0.02), ("centred", (3, 20), False, True, 0.02),
                                             ("channels", (3, 20), False, False, rng.uniform(0.005, 0.02, 7))):
        net, x = Net(), floats(rng, shape, -1, 3)
        x.reshape(-1, 20)[1] = 0
        w = net.const(ints(rng, "i8", (7, 20), -127), Q(scale))
        net.result(net.op("FULLY_CONNECTED", [net.input("f32", x.shape), w, net.const(floats(rng, (7,)))], ["f32"], "FullyConnected", keep_num_dims=keep,
                          asymmetric_quantize_inputs=centred, fused_activation_function=NONE, version=9))
        yield Case(f"fully_connected_hybrid_{tag}", net, [[x]], compiled=tag == "rows")


def narrow(Case, rng):
    net, x = Net(), ints(rng, "i8", (3, 21))
    w = const4(net, rng.integers(-7, 8, (5, 21)), Q(0.1))
    y = net.op("FULLY_CONNECTED", [net.input("i8", x.shape, Q(0.04, -5)), w, net.const(ints(rng, "i32", (5,), -3000, 3000), Q(0.004))], [("i8", Q(0.6, 3))],
               "FullyConnected", version=7)
    net.result(y)
    yield Case("fully_connected_i4", net, [[x]], compiled=True)
    net, x = Net(), floats(rng, (3, 20))
    net.result(net.op("FULLY_CONNECTED", [net.input("f32", x.shape), const4(net, rng.integers(-7, 8, (5, 20)), Q(0.1)), -1], ["f32"], "FullyConnected",
                      version=9))
    yield Case("fully_connected_hybrid_i4", net, [[x]])


def halves(Case, rng):
    net, x = Net(), floats(rng, (1, 6, 5, 3))
    w = net.op("DEQUANTIZE", [net.const(floats(rng, (4, 3, 3, 3), -1, 1).astype(np.float16))], ["f32"], version=3)
    b = net.op("DEQUANTIZE", [net.const(floats(rng, (4,), -1, 1).astype(np.float16))], ["f32"], version=3)
    net.result(net.op("CONV_2D", [net.input("f32", x.shape), w, b], ["f32"], "Conv2D", padding=SAME, stride_h=2, stride_w=1, dilation_h_factor=1,
                      dilation_w_factor=1, fused_activation_function=RELU))
    yield Case("conv_f16_weights", net, [[x]], compiled=True)


def cases(Case, rng):
    for part in (hybrid, narrow, halves):
        yield from part(Case, rng)
