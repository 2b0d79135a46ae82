"""Operators for genonnx.py: OPS[name] = (maker, first opset).

A maker draws operands and attributes from a Gen and returns (names of the inputs, attributes, number of outputs), or None if
nothing fits.
"""
import numpy as np
from onnx import TensorProto, helper

OPS = {}
# Operators whose results jump or grow without bounds when operands change a little.
JUMPS = {"Floor", "Ceil", "Round", "Sign", "Mod", "Cast", "ArgMax", "ArgMin", "TopK", "Hardmax", "NonZero", "Unique", "Equal", "Less",
         "Greater", "LessOrEqual", "GreaterOrEqual", "Div", "Reciprocal", "Tan", "Pow", "Log", "Sqrt", "Exp", "Asin", "Acos", "Acosh", "Atanh",
         "QuantizeLinear", "DynamicQuantizeLinear", "QLinearMatMul", "QLinearConv", "ThresholdedRelu", "Shrink", "IsInf", "IsNaN", "MaxPool",
         "ReduceProd", "ReduceLogSum", "ReduceLogSumExp", "LpNormalization", "LayerNormalization", "InstanceNormalization", "GridSample",
         "MeanVarianceNormalization", "GroupNormalization", "RMSNormalization", "Det", "Compress", "NonMaxSuppression", "Sinh", "Cosh",
         "RoiAlign", "CumProd", "ReduceL2", "BatchNormalization", "Clip", "ScatterElements", "ScatterND"}


def op(*names, since=1):
    def keep(fn):
        for name in names:
            OPS[name] = (fn, since)
        return fn
    return keep


def axis(g, x, low=True):
    a = g.r.randrange(x.ndim)
    return a - x.ndim if low and g.r.random() < 0.3 else a


# ---- elementwise ----

@op("Abs", "Neg", "Ceil", "Floor", "Round", "Sign", "Sqrt", "Exp", "Log", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tanh",
    "Asinh", "Acosh", "Atanh", "Sigmoid", "Relu", "Erf", "Reciprocal", "Softplus", "Softsign", "HardSwish", "IsNaN", "IsInf", "Identity", "Selu")
def unary(g, name):
    return [g.some("fi" if name in ("Abs", "Neg", "Sign", "Identity", "Relu") else "f")], {}, 1


@op("Mish", since=18)
def mish(g, name):
    return [g.some("f")], {}, 1


@op("Gelu", since=20)
def gelu(g, name):
    return [g.some("f")], {"approximate": g.r.choice(("none", "tanh"))}, 1


@op("Not")
def negation(g, name):
    return [g.some("b")], {}, 1


@op("LeakyRelu", "Elu", "Celu", "ThresholdedRelu")
def alpha(g, name):
    return [g.some("f")], {"alpha": g.r.choice((0.1, 0.5, 1.0, 2.0))}, 1


@op("HardSigmoid")
def hard_sigmoid(g, name):
    return [g.some("f")], {"alpha": 0.25, "beta": g.r.choice((0.5, 0.3))}, 1


@op("Shrink")
def shrink(g, name):
    return [g.some("f")], {"lambd": g.r.choice((0.5, 1.5)), "bias": g.r.choice((0.0, 1.5))}, 1


@op("Clip")
def clip(g, name):
    x = g.some("fi")
    dt = g.values[x].dtype
    lo = g.const(-2, dt) if g.r.random() < 0.7 else ""
    hi = g.const(3, dt) if g.r.random() < 0.7 else ""
    return [x] + ([lo, hi] if hi else [lo] if lo else []), {}, 1


@op("Cast")
def cast(g, name):
    to = g.r.choice((TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.INT8,
                     TensorProto.UINT8))
    x = g.some("fib")
    v = g.values[x]
    if v.dtype.kind == "f" and to in (TensorProto.INT8, TensorProto.UINT8, TensorProto.INT32, TensorProto.INT64):
        if not np.isfinite(v).all() or (v.size and (v.min() < (0 if to == TensorProto.UINT8 else -100) or v.max() > 100)):
            return None  # undefined result
    return [x], {"to": to}, 1


@op("Add", "Sub", "Mul", "Div", "Max", "Min", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Equal")
def binary(g, name):
    x = g.some("fi")
    y = g.like(x)
    if name == "Div" and g.values[x].dtype.kind == "i" and (g.values[y] == 0).any():
        return None
    return [x, y] if g.r.random() < 0.5 else ([y, x] if name != "Div" else [x, y]), {}, 1


@op("Pow")
def power(g, name):
    x = g.some("f")
    return [x, g.const(g.r.choice((0, 1, 2, 3, 0.5, -1)), np.float32)], {}, 1


@op("Mod")
def modulo(g, name):
    x = g.some("fi")
    y = g.like(x)
    if (g.values[y] == 0).any():
        return None
    return [x, y], {"fmod": 1 if g.values[x].dtype.kind == "f" or g.r.random() < 0.4 else 0}, 1


@op("Sum", "Mean")
def variadic(g, name):
    x = g.some("f")
    return [x] + [g.like(x) for _ in range(g.r.randint(0, 2))], {}, 1


@op("And", "Or", "Xor")
def logic(g, name):
    x = g.some("b")
    return [x, g.like(x)], {}, 1


@op("PRelu")
def prelu(g, name):
    x = g.some("f", 1)
    v = g.values[x]
    shape = tuple(d if g.r.random() < 0.5 else 1 for d in v.shape)[g.r.randrange(v.ndim):]
    return [x, g.put(g.data(v.dtype, shape))], {}, 1


@op("Where")
def where(g, name):
    x = g.some("fi")
    y = g.like(x)
    shape = np.broadcast_shapes(g.values[x].shape, g.values[y].shape)
    return [g.put(g.data(bool, tuple(d if g.r.random() < 0.7 else 1 for d in shape))), x, y], {}, 1


@op("BitwiseAnd", "BitwiseOr", "BitwiseXor", since=18)
def bitwise(g, name):
    x = g.some("i")
    return [x, g.like(x)], {}, 1


# ---- reductions ----

def is_tame(v):
    """ONNX Runtime deviates from the standard for empty operands and NaN."""
    return v.size > 0 and not np.isnan(v).any()


@op("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp",
    "ReduceSumSquare")
def reduction(g, name):
    x = g.some("f" if "Log" in name or "L2" in name or "Prod" in name else "fi", 0, 4, is_tame)
    if not x:
        return None
    v = g.values[x]
    axes = [a - v.ndim if g.r.random() < 0.3 else a for a in range(v.ndim) if g.r.random() < 0.5]
    attrs = {"keepdims": g.r.randint(0, 1)}
    if g.opset >= 18 or name == "ReduceSum":
        if g.r.random() < 0.3:
            attrs["noop_with_empty_axes"] = 1
        return [x] + ([g.const(axes)] if axes else []), attrs, 1
    return [x], attrs | ({"axes": axes} if axes else {}), 1


@op("ArgMax", "ArgMin")
def arg(g, name):
    x = g.some("fi", 1, 4, is_tame)
    return [x], {"axis": axis(g, g.values[x]), "keepdims": g.r.randint(0, 1), "select_last_index": g.r.randint(0, 1)}, 1


@op("Softmax", "LogSoftmax", "Hardmax")
def softmax(g, name):
    x = g.some("f", 1, 4, is_tame)
    return [x], {"axis": axis(g, g.values[x])}, 1


@op("CumSum")
def cumsum(g, name):
    x = g.some("fi", 1)
    return [x, g.const(axis(g, g.values[x]))], {"exclusive": g.r.randint(0, 1), "reverse": g.r.randint(0, 1)}, 1


@op("TopK")
def topk(g, name):
    x = g.some("fi", 1)
    a = axis(g, g.values[x])
    k = g.r.randint(0, g.values[x].shape[a])
    return [x, g.const([k])], {"axis": a, "largest": g.r.randint(0, 1), "sorted": 1}, 2


@op("LpNormalization")
def lp_normal(g, name):
    x = g.some("f", 1)
    return [x], {"axis": axis(g, g.values[x]), "p": g.r.choice((1, 2))}, 1


# ---- normalization ----

@op("LayerNormalization", since=17)
def layer_norm(g, name):
    x = g.some("f", 1)
    v = g.values[x]
    a = axis(g, v)
    shape = v.shape[a % v.ndim:]
    ins = [x, g.put(g.data(v.dtype, shape))] + ([g.put(g.data(v.dtype, shape))] if g.r.random() < 0.6 else [])
    return ins, {"axis": a, "epsilon": 1e-3}, g.r.choice((1, 1, 3))


@op("BatchNormalization")
def batch_norm(g, name):
    x = g.some("f", 2)
    v = g.values[x]
    c = (v.shape[1],)
    return [x, g.put(g.data(v.dtype, c)), g.put(g.data(v.dtype, c)), g.put(g.data(v.dtype, c)), g.put(np.abs(g.data(v.dtype, c)) + 1)], \
        {"epsilon": 1e-3}, 1


@op("InstanceNormalization")
def instance_norm(g, name):
    x = g.some("f", 3)
    v = g.values[x]
    return [x, g.put(g.data(v.dtype, v.shape[1:2])), g.put(g.data(v.dtype, v.shape[1:2]))], {"epsilon": 1e-3}, 1


@op("GroupNormalization", since=21)
def group_norm(g, name):
    x = g.some("f", 3)
    v = g.values[x]
    c = v.shape[1]
    groups = g.r.choice([k for k in range(1, c + 1) if c % k == 0]) if c else 1
    return [x, g.put(g.data(v.dtype, (c,))), g.put(g.data(v.dtype, (c,)))], {"num_groups": groups, "epsilon": 1e-3}, 1


@op("RMSNormalization", since=23)
def rms_norm(g, name):
    x = g.some("f", 1)
    v = g.values[x]
    a = axis(g, v)
    return [x, g.put(g.data(v.dtype, v.shape[a % v.ndim:]))], {"axis": a, "epsilon": 1e-3}, 1


@op("MeanVarianceNormalization")
def mvn(g, name):
    x = g.some("f", 2, 4, lambda v: v.size > 0 and np.var(v, tuple(a for a in range(v.ndim) if a != 1)).min() > 0.01)
    if not x:
        return None  # all operands equal: ONNX Runtime divides 0 by 0
    return [x], {"axes": [a for a in range(g.values[x].ndim) if a != 1]}, 1


@op("LRN")
def lrn(g, name):
    return [g.some("f", 3)], {"size": g.r.choice((1, 2, 3, 5)), "alpha": 0.1, "beta": 0.75, "bias": 1.5}, 1


# ---- products, windows ----

@op("MatMul")
def matmul(g, name):
    a = g.some("f", 1, 4)
    v = g.values[a]
    k, n = v.shape[-1], g.r.choice(g.sizes)
    lead = v.shape[:-2] if v.ndim > 2 and g.r.random() < 0.5 else ()
    shape = g.r.choice(((k,), (k, n), lead + (k, n), (2,) + (1,) * 0 + (k, n) if v.ndim <= 2 else (k, n)))
    b = g.put(g.data(v.dtype, shape))
    return [a, b], {}, 1


@op("Gemm")
def gemm(g, name):
    a = g.some("f", 2, 2)
    v = g.values[a]
    ta, tb = g.r.randint(0, 1), g.r.randint(0, 1)
    m, k = v.shape[::-1] if ta else v.shape
    n = g.r.choice(g.sizes)
    ins = [a, g.put(g.data(v.dtype, (n, k) if tb else (k, n)))]
    if g.r.random() < 0.7:
        ins.append(g.put(g.data(v.dtype, g.r.choice(((), (n,), (1, n), (m, 1), (m, n))))))
    return ins, {"transA": ta, "transB": tb, "alpha": g.r.choice((1.0, 0.5)), "beta": g.r.choice((1.0, 2.0))}, 1


@op("Einsum")
def einsum(g, name):
    x = g.some("f", 1, 3)
    v = g.values[x]
    letters = "abc"[:v.ndim]
    other = "".join(c for c in letters if g.r.random() < 0.6) + ("d" if g.r.random() < 0.6 else "")
    other = "".join(g.r.sample(other, len(other)))
    size = dict(zip(letters, v.shape)) | {"d": g.r.choice(g.sizes)}
    out = "".join(c for c in dict.fromkeys(letters + other) if g.r.random() < 0.6)
    y = g.put(g.data(v.dtype, tuple(size[c] for c in other)))
    return [x, y], {"equation": f"{letters},{other}->{out}"}, 1


def window(g, space):
    k = [g.r.choice((1, 2, 3, 3, 5)) for _ in space]
    attrs = {"strides": [g.r.choice((1, 1, 2, 3)) for _ in space], "dilations": [g.r.choice((1, 1, 1, 2)) for _ in space]}
    how = g.r.random()
    if how < 0.25:
        attrs["auto_pad"] = g.r.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))
        attrs["dilations"] = [1 for _ in space]
    else:
        attrs["pads"] = [g.r.choice((0, 0, 1, 2)) for _ in range(2 * len(space))]
        attrs["pads"] = [min(p, (k[i % len(space)] - 1) * attrs["dilations"][i % len(space)]) for i, p in enumerate(attrs["pads"])]
    if "SAME" not in attrs.get("auto_pad", ""):
        k = [min(n, d) for n, d in zip(k, space)]
        attrs["dilations"] = [1 if (n - 1) * e + 1 > d else e for n, d, e in zip(k, space, attrs["dilations"])]
    return k, attrs


def image(g, lo=3, hi=4):
    return g.some("f", lo, hi, is_tame)


@op("Conv")
def conv(g, name):
    x = image(g)
    if not x:
        return None
    v = g.values[x]
    c = v.shape[1]
    group = g.r.choice([k for k in range(1, c + 1) if c % k == 0])
    k, attrs = window(g, v.shape[2:])
    m = group * g.r.randint(1, 3)
    ins = [x, g.put(g.data(v.dtype, (m, c // group, *k)))] + ([g.put(g.data(v.dtype, (m,)))] if g.r.random() < 0.6 else [])
    return ins, attrs | {"group": group} | ({"kernel_shape": k} if g.r.random() < 0.5 else {}), 1


@op("ConvTranspose")
def conv_transpose(g, name):
    x = image(g)
    if not x:
        return None
    v = g.values[x]
    c = v.shape[1]
    group = g.r.choice([k for k in range(1, c + 1) if c % k == 0])
    k, attrs = window(g, v.shape[2:])
    attrs.pop("auto_pad", None)
    if g.r.random() < 0.3:
        attrs["output_padding"] = [g.r.randrange(s) for s in attrs["strides"]]
    m = g.r.randint(1, 3)
    ins = [x, g.put(g.data(v.dtype, (c, m, *k)))] + ([g.put(g.data(v.dtype, (m * group,)))] if g.r.random() < 0.5 else [])
    return ins, attrs | {"group": group}, 1


@op("MaxPool")
def max_pool(g, name):
    x = image(g)
    if not x:
        return None
    k, attrs = window(g, g.values[x].shape[2:])
    return [x], attrs | {"kernel_shape": k, "ceil_mode": g.r.randint(0, 1)}, g.r.choice((1, 1, 2))


@op("AveragePool")
def average_pool(g, name):
    x = image(g)
    if not x:
        return None
    k, attrs = window(g, g.values[x].shape[2:])
    if g.opset < 19:
        attrs.pop("dilations")
        if "pads" in attrs:
            n = len(k)
            attrs["pads"] = [min(p, k[i % n] - 1) for i, p in enumerate(attrs["pads"])]
    return [x], attrs | {"kernel_shape": k, "ceil_mode": g.r.randint(0, 1), "count_include_pad": g.r.randint(0, 1)}, 1


@op("LpPool")
def lp_pool(g, name):
    x = image(g)
    if not x:
        return None
    k, attrs = window(g, g.values[x].shape[2:])
    if g.opset < 18:
        attrs.pop("dilations")
        if "pads" in attrs:
            attrs["pads"] = [0] * (2 * len(k))
    return [x], attrs | {"kernel_shape": k, "p": g.r.choice((1, 2, 3))}, 1


@op("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(g, name):
    x = image(g)
    return ([x], {}, 1) if x else None


# ---- data movement ----

@op("Reshape")
def reshape(g, name):
    x = g.some("fib")
    v = g.values[x]
    shape, left = [], v.size
    if not left:
        return None
    while left > 1 and len(shape) < 4:
        k = g.r.choice([d for d in range(1, left + 1) if left % d == 0])
        shape.append(k)
        left //= k
    if left > 1:
        shape.append(left)
    if shape and g.r.random() < 0.4:
        shape[g.r.randrange(len(shape))] = -1
    return [x, g.const(shape)], {}, 1


@op("Transpose")
def transpose(g, name):
    x = g.some("fib")
    n = g.values[x].ndim
    return [x], {"perm": g.r.sample(range(n), n)} if g.r.random() < 0.8 and n else {}, 1


@op("Flatten")
def flatten(g, name):
    x = g.some("f")
    return [x], {"axis": g.r.randint(-g.values[x].ndim, g.values[x].ndim)}, 1


@op("Squeeze")
def squeeze(g, name):
    x = g.some("fib", 1, 4, lambda v: 1 in v.shape)
    if not x:
        return None
    v = g.values[x]
    ones = [i for i, d in enumerate(v.shape) if d == 1 and g.r.random() < 0.8]
    return [x] + ([g.const(ones)] if ones else []), {}, 1


@op("Unsqueeze")
def unsqueeze(g, name):
    x = g.some("fib", 0, 3)
    n = g.values[x].ndim
    axes = g.r.sample(range(n + 1), 1) if g.r.random() < 0.7 else g.r.sample(range(n + 2), 2)
    return [x, g.const(axes)], {}, 1


@op("Slice")
def slices(g, name):
    x = g.some("fi", 1)
    v = g.values[x]
    axes = [a for a in range(v.ndim) if g.r.random() < 0.6] or [0]
    starts, ends, steps = [], [], []
    for a in axes:
        n = v.shape[a]
        s = g.r.choice((1, 1, 2, -1, -2))
        lo, hi = g.r.randint(-n - 1, n + 1), g.r.randint(-n - 1, n + 1)
        if g.r.random() < 0.3:
            hi = 2**31 - 1 if s > 0 else -2**31
        starts.append(lo), ends.append(hi), steps.append(s)
    return [x, g.const(starts), g.const(ends), g.const(axes)] + ([g.const(steps)] if g.r.random() < 0.8 else []), {}, 1


@op("Pad")
def pad(g, name):
    x = g.some("f", 1, 4, lambda v: v.size > 0)
    v = g.values[x]
    mode = g.r.choice(("constant", "constant", "reflect", "edge") + (("wrap",) if g.opset >= 19 else ()))
    most = [max(0, d - 1) if mode == "reflect" else d if mode == "wrap" else 2 for d in v.shape]
    pads = [g.r.randint(0, min(2, m)) for m in most] + [g.r.randint(0, min(2, m)) for m in most]
    if g.r.random() < 0.2 and mode == "constant":
        pads = [-1 if p == 0 and v.shape[i % v.ndim] > 2 and g.r.random() < 0.3 else p for i, p in enumerate(pads)]
    return [x, g.const(pads)] + ([g.const(1.5, v.dtype)] if mode == "constant" and g.r.random() < 0.5 else []), {"mode": mode}, 1


@op("Concat")
def concat(g, name):
    x = g.some("fi", 1)
    v = g.values[x]
    a = axis(g, v)
    ins = [x]
    for _ in range(g.r.randint(0, 2)):
        shape = list(v.shape)
        shape[a] = g.r.choice((1, 2, 3))
        ins.append(g.put(g.data(v.dtype, tuple(shape))) if g.r.random() < 0.6 else x)
    return ins, {"axis": a}, 1


@op("Split")
def split(g, name):
    x = g.some("fi", 1, 4, lambda v: max(v.shape) > 1)
    if not x:
        return None
    v = g.values[x]
    a = axis(g, v)
    n = v.shape[a]
    if n < 2:
        return None
    k = g.r.randint(1, n - 1)
    return [x, g.const([k, n - k])], {"axis": a}, 2


@op("Tile")
def tile(g, name):
    x = g.some("fi", 0, 3, lambda v: v.size < 200)
    return [x, g.const([g.r.choice((1, 1, 2, 3)) for _ in g.values[x].shape])], {}, 1


@op("Expand")
def expand(g, name):
    x = g.some("fib", 0, 3, lambda v: v.size < 200)
    v = g.values[x]
    shape = [g.r.choice((1, d)) if d != 1 else g.r.choice((1, 2, 3)) for d in v.shape]
    return [x, g.const(([2] if g.r.random() < 0.3 else []) + shape)], {}, 1


@op("DepthToSpace", "SpaceToDepth")
def depth(g, name):
    b = g.r.choice((1, 2))
    x = g.some("f", 4, 4, lambda v: v.shape[1] % (b * b) == 0 if name[0] == "D" else v.shape[2] % b == 0 and v.shape[3] % b == 0)
    if not x:
        return None
    return [x], {"blocksize": b} | ({"mode": g.r.choice(("DCR", "CRD"))} if name[0] == "D" else {}), 1


@op("Gather")
def gather(g, name):
    x = g.some("fib", 1, 4, lambda v: min(v.shape) > 0)
    if not x:
        return None
    a = axis(g, g.values[x])
    n = g.values[x].shape[a]
    return [x, g.put(g.data(g.r.choice((np.int64, np.int32)), g.shape(0, 2), -n, n))], {"axis": a}, 1


@op("GatherElements")
def gather_elements(g, name):
    x = g.some("fi", 1, 4, lambda v: min(v.shape) > 0)
    if not x:
        return None
    v = g.values[x]
    a = axis(g, v)
    shape = tuple(g.r.randint(1, d) for d in v.shape)
    return [x, g.put(g.data(np.int64, shape, -v.shape[a], v.shape[a]))], {"axis": a}, 1


@op("GatherND")
def gather_nd(g, name):
    x = g.some("fi", 1, 4, lambda v: min(v.shape) > 0)
    if not x:
        return None
    v = g.values[x]
    b = g.r.randint(0, min(1, v.ndim - 1))
    k = g.r.randint(1, v.ndim - b)
    n = min(v.shape[b:b + k])
    return [x, g.put(g.data(np.int64, v.shape[:b] + g.shape(0, 2) + (k,), -n, n))], {"batch_dims": b}, 1


def distinct(g, v, k):
    rows = [tuple(r) for r in np.argwhere(np.ones(v.shape[:k]))]
    some = g.r.sample(rows, g.r.randint(1, min(5, len(rows))))
    return np.array(some, np.int64).reshape(len(some), k)


@op("ScatterND")
def scatter_nd(g, name):
    x = g.some("f", 1, 4, lambda v: min(v.shape) > 0)
    if not x:
        return None
    v = g.values[x]
    k = g.r.randint(1, v.ndim)
    idx = distinct(g, v, k)
    attrs = {"reduction": g.r.choice(("none", "add", "mul") + (("max", "min") if g.opset >= 18 else ()))} if g.opset >= 16 else {}
    return [x, g.put(idx), g.put(g.data(v.dtype, (len(idx),) + v.shape[k:]))], attrs, 1


@op("ScatterElements")
def scatter_elements(g, name):
    x = g.some("f", 1, 3, lambda v: min(v.shape) > 0)
    if not x:
        return None
    v = g.values[x]
    a = axis(g, v)
    add = g.opset >= 16 and g.r.random() < 0.5
    shape = [g.r.randint(1, d) for d in v.shape]
    if not add:  # unique indices: ONNX does not define which of two equal ones wins
        idx = np.argsort(g.np.random(tuple(v.shape[i] if i == a % v.ndim else s for i, s in enumerate(shape))), axis=a)
        idx = np.take(idx, range(shape[a]), axis=a).astype(np.int64)
    else:
        idx = g.data(np.int64, tuple(shape), -v.shape[a], v.shape[a])
    return [x, g.put(idx), g.put(g.data(v.dtype, tuple(shape)))], {"axis": a} | ({"reduction": "add"} if add else {}), 1


@op("OneHot")
def one_hot(g, name):
    depth = g.r.randint(1, 5)
    x = g.put(g.data(np.int64, g.shape(0, 2), -depth - 1, depth + 1))
    return [x, g.const(depth), g.put(np.array([-1, 2.5], np.float32))], {"axis": g.r.randint(-1, g.values[x].ndim)}, 1


@op("NonZero")
def nonzero(g, name):
    return [g.some("fib", 1)], {}, 1  # scalar operands: ONNX Runtime deviates from the standard


@op("Trilu", since=14)
def trilu(g, name):
    x = g.some("fi", 2)
    return [x] + ([g.const(g.r.randint(-3, 3))] if g.r.random() < 0.6 else []), {"upper": g.r.randint(0, 1)}, 1


@op("EyeLike")
def eye_like(g, name):
    return [g.some("f", 2, 2)], {"k": g.r.randint(-2, 2)}, 1


@op("ReverseSequence")
def reverse_sequence(g, name):
    x = g.some("f", 2, 4, lambda v: min(v.shape[:2]) > 0)
    if not x:
        return None
    v = g.values[x]
    t = g.r.randint(0, 1)
    return [x, g.put(g.data(np.int64, (v.shape[1 - t],), 1, v.shape[t] + 1))], {"time_axis": t, "batch_axis": 1 - t}, 1


@op("Compress")
def compress(g, name):
    x = g.some("f", 1)
    v = g.values[x]
    a = axis(g, v)
    return [x, g.put(g.data(bool, (v.shape[a],)), g.r.random() < 0.7)], {"axis": a}, 1


@op("Unique")
def unique(g, name):
    x = g.put(np.round(g.data(np.float32, g.shape(1, 2))))
    return [x], {"sorted": g.r.randint(0, 1)}, g.r.choice((1, 4))


@op("Shape")
def shape_of(g, name):
    x = g.some("fi")
    n = g.values[x].ndim
    return [x], {"start": g.r.randint(-n, n), "end": g.r.randint(-n, n + 1)} if g.opset >= 15 and g.r.random() < 0.5 and n else {}, 1


@op("Size")
def size_of(g, name):
    return [g.some("fi")], {}, 1


@op("Range")
def span(g, name):
    dt = g.r.choice((np.int64, np.float32))
    step = g.r.choice((1, 2, -1))
    return [g.const(0, dt), g.const(g.r.randint(0, 6) * step, dt), g.const(step, dt)], {}, 1


@op("ConstantOfShape")
def constant_of_shape(g, name):
    return [g.const(list(g.shape(0, 3)))], {"value": helper.make_tensor("v", TensorProto.FLOAT, [1], [2.5])}, 1


@op("CenterCropPad", since=18)
def center(g, name):
    x = g.some("f", 1)
    v = g.values[x]
    axes = g.r.sample(range(v.ndim), g.r.randint(1, v.ndim))
    return [x, g.const([g.r.randint(1, 6) for _ in axes])], {"axes": axes}, 1
