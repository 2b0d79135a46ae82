"""com.microsoft: quantized operators. Integer results may differ by one: ONNX Runtime rounds at other places."""
import numpy as np

ONE = {"rtol": 0, "atol": 1}


def U(x):
    return np.array(x, np.uint8)


def F(x):
    return np.array(x, np.float32)


def maps(M, u, s, rng):
    two = {"az": U(100), "bz": U(120), "yz": U(90), "as": F(.02), "bs": F(.03), "ys": F(.05)}
    for op in ("QLinearAdd", "QLinearMul"):
        yield M(op, op, ["a", "as", "az", "b", "bs", "bz", "ys", "yz"], ["y"], {"a": u(2, 3, 4), "b": u(3, 4)}, two, **ONE)
    names = ["a", "as", "az", "ys", "yz"]
    for op, attrs in (("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": .1})):
        init = {"as": F(.02), "ys": F(.01)}
        yield M(op, op, names, ["y"], {"a": u(2, 3, 4)}, init | {"az": U(100), "yz": U(10)}, attrs, **ONE)
        yield M(op + "_signed", op, names, ["y"], {"a": s(2, 3, 4)}, init | {"az": np.int8(-10), "yz": np.int8(10)}, attrs, **ONE)
    init = {"as": F(.02), "ys": F(1 / 256), "az": U(100), "yz": U(0)}
    for opset, axis in ((13, -1), (13, 1), (12, 1)):
        attrs = {"opset": opset, "axis": axis}
        yield M(f"softmax_{opset}_{axis % 3}", "QLinearSoftmax", names, ["y"], {"a": u(2, 3, 4)}, init, attrs, **ONE)
    where = {"c": rng.random((2, 3)) > .5, "a": u(2, 3), "b": u(1, 3)}
    yield M("where", "QLinearWhere", ["c", "a", "as", "az", "b", "bs", "bz", "ys", "yz"], ["y"], where, two, **ONE)
    yield M("concat", "QLinearConcat", ["ys", "yz", "a", "as", "az", "b", "bs", "bz"], ["y"], {"a": u(2, 3), "b": u(2, 4)}, two, {"axis": 1}, **ONE)


def pools(M, u):
    names, init = ["a", "as", "az", "ys", "yz"], {"as": F(.02), "ys": F(.01), "az": U(100), "yz": U(110)}
    for last in (0, 1):
        shape = (2, 7, 8, 3) if last else (2, 3, 7, 8)
        for pads in (0, 1):
            for ceil in (0, 1):
                attrs = {"channels_last": last, "kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1], "count_include_pad": pads,
                         "ceil_mode": ceil}
                yield M(f"average_{last}{pads}{ceil}", "QLinearAveragePool", names, ["y"], {"a": u(*shape)}, init, attrs, **ONE)
        yield M(f"global_{last}", "QLinearGlobalAveragePool", names, ["y"], {"a": u(*shape)}, init, {"channels_last": last}, **ONE)


def products(M, f, u, s, rng):
    bias = rng.integers(-500, 500, 5).astype(np.int32)
    for turn in (0, 1):
        for out in (0, 1):
            init = {"as": F(.02), "az": U(100), "b": s(5, 4) if turn else s(4, 5), "bs": F(.03), "bz": np.int8(3), "c": bias}
            names = ["a", "as", "az", "b", "bs", "bz", "c"]
            if out:
                init |= {"ys": F(.05), "yz": U(90)}
                names += ["ys", "yz"]
            attrs = {"transB": turn, "alpha": .7}
            yield M(f"gemm_{turn}{out}", "QGemm", names, ["y"], {"a": u(3, 4)}, init, attrs, **(ONE if out else {}))
    init = {"as": F(.02), "az": U(100), "b": s(5, 4), "bs": np.abs(f(5)), "bz": s(5)}
    yield M("gemm_columns", "QGemm", ["a", "as", "az", "b", "bs", "bz"], ["y"], {"a": u(3, 4)}, init, {"transB": 1})
    init = {"xs": F(.02), "xz": U(100), "w": s(4, 3, 3, 3), "ws": np.abs(f(4)) * F(.01), "wz": np.zeros(4, np.int8), "ys": F(.1), "yz": U(120),
            "b": bias[:4]}
    yield M("conv", "QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"], ["y"], {"x": u(1, 3, 6, 6)}, init,
            {"pads": [1, 1, 1, 1]}, **ONE)
    yield M("conv_last", "QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"], ["y"], {"x": u(2, 6, 5, 3)}, init,
            {"pads": [1, 0, 1, 1], "strides": [2, 1], "channels_last": 1}, **ONE)
    init = {"b": s(4, 5), "as": F(.02), "bs": np.abs(f(5)), "az": U(100), "bz": s(5), "c": f(5)}
    yield M("integertofloat", "MatMulIntegerToFloat", ["a", "b", "as", "bs", "az", "bz", "c"], ["y"], {"a": u(2, 3, 4)}, init)
    init = {"b": u(4, 5), "bs": F(.03), "bz": U(120), "c": f(5)}
    yield M("dynamic", "DynamicQuantizeMatMul", ["a", "b", "bs", "bz", "c"], ["y"], {"a": f(2, 3, 4)}, init, atol=1e-3)
    init = {"b": s(4, 5), "bs": np.abs(f(5)) * F(.01), "bz": s(5)}
    yield M("dynamic_columns", "DynamicQuantizeMatMul", ["a", "b", "bs", "bz"], ["y"], {"a": f(2, 3, 4)}, init, atol=1e-3)
    B, S, H, n = 2, 4, 12, 3
    init = {"w": s(H, 3 * H), "b": f(3 * H), "xs": F(.02), "ws": F(.01), "xz": U(120), "wz": np.int8(0)}
    yield M("attention", "QAttention", ["x", "w", "b", "xs", "ws", "m", "xz", "wz"], ["y"],
            {"x": u(B, S, H), "m": np.array([2, 4], np.int32)}, init, {"num_heads": n})
    yield M("attention_past", "QAttention", ["x", "w", "b", "xs", "ws", "", "xz", "wz", "p"], ["y", "q"],
            {"x": u(B, S, H), "p": f(2, B, n, 3, 4)}, init, {"num_heads": n, "unidirectional": 1})


# Values of the codes of FP4 and NF4 (bitsandbytes), as QLoRA defines them.
BNB4 = np.array([[0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4, 0, -1 / 192, -2 / 3, -1, -1 / 3, -1 / 2, -1 / 6, -1 / 4],
                 [-1, -0.6961928, -0.52507305, -0.3949175, -0.28444138, -0.18477343, -0.091050036, 0, 0.0795803, 0.1609302, 0.2461123,
                  0.33791524, 0.44070983, 0.562617, 0.72295684, 1]], np.float32)


def blocks(M, f, u, rng):
    n = 6
    for bits in (2, 4, 8):
        for k, block in ((32, 16), (40, 32), (64, 32)):
            for zero in ("none", "packed", "float"):
                if bits == 8 and zero == "float":
                    continue  # the judge refuses it
                count = (k + block - 1) // block
                init = {"b": u(n, count, block * bits // 8), "s": np.abs(f(n, count)) * F(.1)}
                if zero != "none":
                    init["z"] = u(n, (count * bits + 7) // 8) if zero == "packed" else f(n, count) * 3 + 5
                attrs = {"N": n, "K": k, "bits": bits, "block_size": block}
                yield M(f"nbits_{bits}_{k}_{zero}", "MatMulNBits", ["a", *init], ["y"], {"a": f(2, 3, k)}, init, attrs, rtol=1e-3, atol=1e-3)
    init = {"b": u(n, 2, 8), "s": np.abs(f(n, 2)) * F(.1), "c": f(n)}
    attrs = {"N": n, "K": 32, "bits": 4, "block_size": 16}
    yield M("nbits_bias", "MatMulNBits", ["a", "b", "s", "", "", "c"], ["y"], {"a": f(2, 3, 32)}, init, attrs, rtol=1e-3, atol=1e-3)
    init = {"b": u(n, 2, 8), "s": np.abs(f(n, 2)) * F(.1), "g": rng.permutation(np.repeat([0, 1], 16)).astype(np.int32)}
    yield M("nbits_order", "MatMulNBits", ["a", "b", "s", "", "g"], ["y"], {"a": f(2, 3, 32)}, init, attrs, rtol=1e-3, atol=1e-3)
    for kind, name in enumerate(("fp4", "nf4")):
        for k, block, turn in ((32, 16, 1), (21, 16, 1), (20, 64, 0), (33, 32, 0)):  # blocks may cross rows, and the last may be short
            init = {"b": u((n * k + 1) // 2), "s": np.abs(f((n * k + block - 1) // block))}
            attrs = {"N": n, "K": k, "block_size": block, "quant_type": kind, "transB": turn}
            a = f(2, 3, k if turn else n)
            if not turn:  # ONNX Runtime 1.31 ignores transB on CPUs and reads outside of the weights
                codes = np.stack([init["b"] >> 4, init["b"] & 15], 1).reshape(-1)[:n * k]
                w = BNB4[kind][codes] * np.repeat(init["s"], block)[:n * k]
            yield M(f"bnb4_{name}_{k}_{turn}", "MatMulBnb4", ["a", *init], ["y"], {"a": a}, init, attrs, compiled=k == 21,
                    expect=None if turn else [a @ w.reshape(n, k)])
    init, attrs = {"b": u(96), "s": np.abs(f(12))}, {"N": n, "K": 32, "block_size": 16, "quant_type": 1}
    yield M("bnb4_block", "MatMulBnb4", ["a", *init], ["y"], {"a": f(3, 32)}, init, attrs | {"block_size": 24}, refuse="block_size is 24")
    yield M("bnb4_kind", "MatMulBnb4", ["a", *init], ["y"], {"a": f(3, 32)}, init, attrs | {"quant_type": 2}, refuse="quant_type is 2")
    yield M("bnb4_sizes", "MatMulBnb4", ["a", *init], ["y"], {"a": f(3, 32)}, init, attrs | {"N": n + 1}, refuse="expected weights u8[112]")
    for bits in (4, 8):
        for zero in (0, 1):
            init = {"s": np.abs(f(10, 2)) * F(.1)} | ({"z": u(10, (2 * bits + 7) // 8)} if zero else {})
            attrs = {"bits": bits, "block_size": 16, "quantize_axis": 1, "gather_axis": 0}
            yield M(f"gather_{bits}_{zero}", "GatherBlockQuantized", ["d", "i", *init], ["y"], {"i": rng.integers(0, 10, (2, 3))},
                    init | {"d": u(10, 4 * bits)}, attrs)


# Results of loops whose operands are constants are not constants: the body reads values from outside. One quantisation step is 0.02.
ROUNDED = """g (%s) => (float[a,b,c,d] y) { s = Constant <value = float {0.02}>()  z = Constant <value = int8 {3}>()
  %s  q = QuantizeLinear(v, s, z)  y = DequantizeLinear(q, s, z) }"""


def rounded(Case, f):
    for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        data = {"x": f(3, 2, 3), "w": f(1, 4 * gates, 3), "r": f(1, 4 * gates, 4)}
        shapes = ", ".join(f"float[{','.join(map(str, a.shape))}] {k}" for k, a in data.items())
        yield Case(f"rounded_{op}", "", [], [], data, text=ROUNDED % (shapes, f"v, h = {op} <hidden_size = 4> (x, w, r)"), rtol=0, atol=.0201, compiled=True)
    text = ROUNDED % ("float[1,2,8,8] x", "r = Constant <value = float[1,4] {0, 0, 6, 6}>()  i = Constant <value = int64[1] {0}>()  "
                                          "v = RoiAlign <output_height = 2, output_width = 2> (x, r, i)")
    yield Case("rounded_RoiAlign", "", [], [], {"x": f(1, 2, 8, 8)}, text=text, rtol=0, atol=.0201, compiled=True)
    text = ROUNDED % ("float[1,2,3,1] x", "n = Constant <value = int64 {3}>()  go = Constant <value = bool {1}>()  c = Constant <value = float[1,2,3,1] {1,2,3,4,5,6}>()  "
                                          "v = Loop(n, go, c) <body = b (int64 i, bool k, float[1,2,3,p] a) => (bool k2, float[1,2,3,q] d) { k2 = Identity(k)  d = Mul(a, x) }>")
    yield Case("rounded_Loop", "", [], [], {"x": f(1, 2, 3, 1) * F(.3)}, text=text, rtol=0, atol=.0201)


def cases(Case, rng):
    def f(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    def u(*shape):
        return rng.integers(0, 256, shape).astype(np.uint8)

    def s(*shape):
        return rng.integers(-128, 128, shape).astype(np.int8)

    def weights(*shape):  # see test/make/oracle.py
        return rng.integers(-64, 65, shape).astype(np.int8)

    def M(*args, **more):
        return Case(*args, **{"domain": "com.microsoft"} | more)
    yield from maps(M, u, s, rng)
    yield from pools(M, u)
    yield from products(M, f, u, weights, rng)
    yield from blocks(M, f, u, rng)
    for kind, zero in (("u8", U(100)), ("u16", np.uint16(30000))):
        yield M("quantize_" + kind, "QuantizeLinear", ["x", "s", "z"], ["y"], {"x": f(3, 4)}, {"s": F(.002 if kind == "u16" else .02), "z": zero}, **ONE)
    yield M("dequantize", "DequantizeLinear", ["x", "s", "z"], ["y"], {"x": u(3, 4)}, {"s": np.abs(f(4)), "z": u(4)}, {"axis": 1})
    for count, way in ((1, "forward"), (1, "reverse"), (2, "bidirectional")):
        T, B, I, H = 5, 2, 4, 3
        init = {"w": weights(count, I, 4 * H), "r": weights(count, H, 4 * H), "b": f(count, 8 * H) * F(.1), "ws": np.abs(f(count)) * F(.01),
                "wz": np.zeros(count, np.int8), "rs": np.abs(f(count)) * F(.01), "rz": np.zeros(count, np.int8)}
        yield M("lstm_" + way, "DynamicQuantizeLSTM", ["x", "w", "r", "b", "", "", "", "", "ws", "wz", "rs", "rz"], ["y", "h", "c"],
                {"x": f(T, B, I)}, init, {"hidden_size": H, "direction": way}, rtol=1e-2, atol=5e-3)
    yield from rounded(Case, f)
