"""Compares single operators with random attributes and shapes with ONNX Runtime: genparam.py [--seed N] [--count N] [--ops
NAMES] [--engine interp].

Where ONNX Runtime refuses a model, the reference evaluator of onnx computes the expected result.
If ingot differs from one of the two, it must agree with the other.
The script counts models that ingot refuses as unsupported, and prints the reasons.
The seed determines everything.
Runs with the Python of build/venv.
"""
import argparse
import os
import random
import sys
import warnings
from collections import Counter

import numpy as np
from onnx import helper, numpy_helper

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))
import ingot  # noqa: E402
import oracle  # noqa: E402

OPS = {}
RTOL, ATOL = 2e-4, 2e-5


def op(fn):
    OPS[fn.__name__] = fn
    return fn


class Draw:
    """Draws random values, and collects the node they define: inputs in order, attributes, opset."""

    def __init__(self, seed):
        self.r, self.np = random.Random(seed), np.random.default_rng(seed)
        self.data, self.init, self.inputs = {}, {}, []
        self.attrs, self.outputs, self.opset, self.judge = {}, 1, 22, "ort"

    def pick(self, *x):
        return self.r.choice(x)

    def chance(self, p):
        return self.r.random() < p

    def f(self, *shape):
        return self.np.standard_normal(shape).astype(np.float32)

    def give(self, x, known=False):
        name = f"x{len(self.inputs)}"
        (self.init if known else self.data)[name] = np.asarray(x)
        self.inputs.append(name)

    def skip(self):
        self.inputs.append("")

    def ints(self, n, lo, hi):
        return [self.r.randint(lo, hi) for _ in range(n)]

    def maybe(self, p=0.5, **attrs):
        for k, v in attrs.items():
            if self.chance(p):
                self.attrs[k] = v


# ---- contractions ----

@op
def Einsum(d):
    letters = "abcdeI"
    size = {c: d.r.randint(1, 4) for c in letters}
    n, dots = d.pick(1, 2, 2, 3), d.chance(0.4)
    wide = [d.r.randint(1, 3) for _ in range(d.r.randint(0, 2))]
    terms, shapes = [], []
    for _ in range(n):
        t = "".join(d.r.choice(letters) for _ in range(d.r.randint(0 if dots else 1, 3)))
        shape = [size[c] for c in t]
        if dots and d.chance(0.8):
            at = d.r.randint(0, len(t))
            lead = [w if d.chance(0.7) else 1 for w in wide][d.r.randint(0, len(wide)):] if d.chance(0.6) else list(wide)
            shape[at:at] = lead
            t = t[:at] + "..." + t[at:]
        terms.append(t)
        shapes.append(shape)
    space = d.pick("", " ")
    text = ("," + space).join(terms)
    used = sorted(set("".join(terms).replace(".", "")))
    if d.chance(0.7):
        out = d.r.sample(used, d.r.randint(0, len(used)))
        if any("..." in t for t in terms):
            out.insert(d.r.randint(0, len(out)), "...")
        text += space + "->" + space + "".join(out)
    d.attrs["equation"] = text
    for s in shapes:
        d.give(d.f(*s))
    d.judge = "numpy"
    d.expect = lambda xs: [np.einsum(text.replace(" ", ""), *xs)]


def window(d, n):
    """Attributes of windows. With auto_pad, ONNX Runtime ignores dilations and strides larger than the kernel."""
    kernel = d.ints(n, 1, 3)
    d.maybe(strides=d.ints(n, 1, 3), dilations=d.ints(n, 1, 2))
    how = d.pick("none", "pads", "pads", "SAME_UPPER", "SAME_LOWER", "VALID")
    if how[0] == "S":
        d.attrs.pop("dilations", None)
        kernel = [max(k, s) for k, s in zip(kernel, d.attrs.get("strides", kernel))]
    if how == "pads":
        d.attrs["pads"] = [d.r.randint(0, k - 1) for k in kernel + kernel]
    elif how != "none":
        d.attrs["auto_pad"] = how
    return kernel


@op
def Conv(d):
    n, group = d.pick(1, 2, 2, 3), d.pick(1, 1, 2, 3)
    kernel = window(d, n)
    cin, cout = group * d.r.randint(1, 2), group * d.r.randint(1, 3)
    d.give(d.f(d.r.randint(1, 2), cin, *d.ints(n, 5, 9)))
    d.give(d.f(cout, cin // group, *kernel), d.chance(0.5))
    d.attrs["group"] = group
    d.maybe(kernel_shape=kernel)
    if d.chance(0.5):
        d.give(d.f(cout))


@op
def ConvTranspose(d):
    n, group = d.pick(1, 2, 2, 3), d.pick(1, 1, 2)
    kernel = window(d, n)
    cin, cout = group * d.r.randint(1, 2), group * d.r.randint(1, 2)
    space, stride = d.ints(n, 3, 5), d.attrs.get("strides", [1] * n)
    d.give(d.f(d.r.randint(1, 2), cin, *space))
    d.give(d.f(cin, cout // group, *kernel))
    d.attrs["group"] = group
    d.maybe(0.4, output_padding=[d.r.randint(0, max(s - 1, 0)) for s in stride])
    if d.chance(0.3):
        d.attrs.pop("pads", None)
        dil = d.attrs.get("dilations", [1] * n)
        d.attrs["output_shape"] = [s * (a - 1) + (k - 1) * e + 1 - d.r.randint(0, 1) for a, s, k, e in zip(space, stride, kernel, dil)]
    if d.chance(0.4):
        d.give(d.f(cout))


@op
def MaxPool(d):
    n = d.pick(1, 2, 2, 3)
    d.attrs["kernel_shape"] = window(d, n)
    d.maybe(ceil_mode=1)
    d.outputs = 2 if d.chance(0.3) and n < 3 else 1
    d.maybe(0.2, storage_order=1)
    d.give(d.f(d.r.randint(1, 2), d.r.randint(1, 2), *d.ints(n, 5, 9)))


@op
def AveragePool(d):
    n = d.pick(1, 2, 2, 3)
    d.attrs["kernel_shape"] = window(d, n)
    d.maybe(ceil_mode=1, count_include_pad=1)
    d.give(d.f(d.r.randint(1, 2), d.r.randint(1, 2), *d.ints(n, 5, 9)))


@op
def LpPool(d):
    n = d.pick(1, 2, 2, 3)
    d.attrs["kernel_shape"] = window(d, n)
    d.maybe(ceil_mode=1, p=d.r.randint(1, 3))
    d.give(np.abs(d.f(d.r.randint(1, 2), d.r.randint(1, 2), *d.ints(n, 5, 9))) + 0.1)


@op
def Col2Im(d):
    n = d.pick(1, 2, 2, 3)
    image, block = d.ints(n, 4, 6), d.ints(n, 1, 3)
    stride, dil, pads = d.ints(n, 1, 2), d.ints(n, 1, 2), d.ints(2 * n, 0, 1)
    count = [(i + pads[k] + pads[n + k] - e * (b - 1) - 1) // s + 1 for k, (i, b, s, e) in enumerate(zip(image, block, stride, dil))]
    if min(count) < 1:
        return False
    d.give(d.f(d.r.randint(1, 2), d.r.randint(1, 2) * int(np.prod(block)), int(np.prod(count))))
    d.give(np.array(image), True)
    d.give(np.array(block), True)
    d.attrs.update(strides=stride, dilations=dil, pads=pads)


@op
def DeformConv(d):
    group, og = d.pick(1, 2), d.pick(1, 2)
    cin, kernel = 2 * d.pick(1, 2), d.ints(2, 1, 3)
    stride, dil, pads = d.ints(2, 1, 2), d.ints(2, 1, 2), d.ints(4, 0, 1)
    space = d.ints(2, 5, 7)
    out = [(i + pads[k] + pads[2 + k] - e * (b - 1) - 1) // s + 1 for k, (i, b, s, e) in enumerate(zip(space, kernel, stride, dil))]
    if min(out) < 1:
        return False
    n, points = d.r.randint(1, 2), kernel[0] * kernel[1]
    d.give(d.f(n, cin, *space))
    d.give(d.f(group * d.r.randint(1, 2), cin // group, *kernel))
    d.give(d.f(n, og * points * 2, *out))
    bias, mask = d.chance(0.5), d.chance(0.5)
    if bias or mask:
        d.give(d.f(d.init.get("x1", d.data.get("x1")).shape[0])) if bias else d.skip()
    if mask:
        d.give(d.f(n, og * points, *out))
    d.attrs.update(group=group, offset_group=og, strides=stride, dilations=dil, pads=pads, kernel_shape=kernel)
    d.judge = "onnx"


# ---- indices ----

@op
def Resize(d):
    n = d.pick(1, 2, 2, 3)
    shape = [d.r.randint(1, 2)] * d.pick(0, 1, 2) + d.ints(n, 2, 7)
    rank, mode = len(shape), d.pick("nearest", "linear", "cubic")
    lead = rank - n
    d.opset = d.pick(13, 18, 19, 22)
    ways = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"] + (["half_pixel_symmetric"] if d.opset >= 19 else [])
    d.attrs.update(mode=mode, coordinate_transformation_mode=d.r.choice(ways + ["tf_crop_and_resize"]))
    if mode == "nearest":
        d.maybe(0.8, nearest_mode=d.pick("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"))
    if mode == "cubic":
        d.maybe(cubic_coeff_a=d.pick(-0.5, -0.75), exclude_outside=1)
    if d.opset >= 18 and mode != "nearest":
        d.maybe(0.4, antialias=1)
    crop = d.attrs["coordinate_transformation_mode"] == "tf_crop_and_resize"
    if crop:
        d.maybe(extrapolation_value=d.pick(0.0, 7.5))
    d.give(d.f(*shape))
    roi = np.array([0.0] * lead + [d.pick(0.0, 0.125, -0.25, 0.25) for _ in range(n)] + [1.0] * lead + [d.pick(1.0, 0.875, 1.25) for _ in range(n)],
                   np.float32)
    d.give(roi, True) if crop else d.skip()
    if d.chance(0.5):
        scales = [d.pick(0.5, 0.6, 1, 1.5, 2, 2.3, 3) for _ in range(n)]
        if d.attrs["coordinate_transformation_mode"] in ("align_corners", "pytorch_half_pixel", "tf_crop_and_resize"):
            # ONNX Runtime and ingot round the length of the result, scale * length; the reference does not (test/ops/sample.py covers those cases).
            scales = [k if abs(k * m - round(k * m)) < 1e-6 else 2 for k, m in zip(scales, shape[lead:])]
        d.give(np.array([1] * lead + scales, np.float32), True)
    else:
        d.skip()
        d.give(np.array(shape[:lead] + d.ints(n, 1, 9)), True)


@op
def GridSample(d):
    n = d.pick(2, 2, 3)
    d.opset = 20 if n == 3 else d.pick(16, 20)
    mode = d.pick("linear", "nearest", "cubic") if n == 2 else d.pick("linear", "nearest")
    if d.opset == 16:
        mode = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    d.attrs.update(mode=mode, padding_mode=d.pick("zeros", "border", "reflection"), align_corners=d.pick(0, 1))
    batch = d.r.randint(1, 2)
    d.give(d.f(batch, d.r.randint(1, 2), *d.ints(n, 1 if d.chance(0.2) else 2, 5)))
    d.give(d.np.uniform(-1.6, 1.6, (batch, *d.ints(n, 1, 4), n)).astype(np.float32))


@op
def Pad(d):
    rank = d.r.randint(1, 4)
    shape = d.ints(rank, 2, 5)
    d.opset = d.pick(11, 13, 18, 19, 21, 23)
    mode = d.pick("constant", "edge", "reflect", *(["wrap"] if d.opset >= 19 else []))
    axes = sorted(d.r.sample(range(rank), d.r.randint(1, rank))) if d.opset >= 18 and d.chance(0.5) else list(range(rank))
    room = [shape[a] - 1 if mode == "reflect" else shape[a] for a in axes]
    low = [-1 if d.chance(0.2) and mode == "constant" else 0 for _ in axes]
    pads = [d.r.randint(lo, r) for lo, r in zip(low, room)] + [d.r.randint(lo, r) for lo, r in zip(low, room)]
    d.attrs["mode"] = mode
    d.give(d.f(*shape))
    d.give(np.array(pads), True)
    value = mode == "constant" and d.chance(0.5)
    if value:
        d.give(np.array(2.5, np.float32))
    if len(axes) < rank or (d.opset >= 18 and d.chance(0.3)):
        if not value:
            d.skip()
        d.give(np.array([a - rank if d.chance(0.3) else a for a in axes]), True)


@op
def RoiAlign(d):
    d.opset = d.pick(10, 16)
    n, regions = d.r.randint(1, 2), d.r.randint(1, 3)
    h, w = d.ints(2, 4, 9)
    low = d.np.uniform(0, 3, (regions, 2))
    d.give(d.f(n, d.r.randint(1, 2), h, w))
    d.give(np.concatenate([low, low + d.np.uniform(0.5, 6, (regions, 2))], 1).astype(np.float32))
    d.give(d.np.integers(0, n, regions))
    mode = d.pick("avg", "avg", "max")
    d.attrs.update(mode=mode, output_height=d.r.randint(1, 4), output_width=d.r.randint(1, 4), spatial_scale=d.pick(1.0, 0.5),
                   sampling_ratio=1 if mode == "max" else d.r.randint(0, 3))
    if d.opset >= 16:
        d.attrs["coordinate_transformation_mode"] = d.pick("half_pixel", "output_half_pixel")


# ---- signals ----

@op
def DFT(d):
    d.opset = d.pick(17, 20)
    rank, inverse = d.r.randint(1, 3), d.chance(0.4)
    shape = [*d.ints(rank, 1, 11)]
    complex_in = d.chance(0.5)
    axis = d.r.randrange(rank)
    shape = [1, *shape] if d.opset == 17 else shape
    axis += d.opset == 17
    d.attrs["inverse"] = int(inverse)
    onesided = not inverse and not complex_in and d.chance(0.5)
    d.attrs["onesided"] = int(onesided)
    d.give(d.f(*shape, 2 if complex_in else 1))
    if d.chance(0.4):
        d.give(np.array(d.r.randint(1, 12)), True)
    elif d.opset == 20:
        d.skip()
    if d.opset == 17:
        d.attrs["axis"] = axis
    else:
        d.give(np.array(axis), True)
    d.judge = "numpy"

    def expect(xs):
        x = xs[0][..., 0] + (1j * xs[0][..., 1] if complex_in else 0)
        n = int(d.init["x1"]) if "x1" in d.init and d.inputs[1] else x.shape[axis]
        y = (np.fft.ifft if inverse else np.fft.rfft if onesided else np.fft.fft)(x.real if onesided else x, n, axis=axis)
        return [np.stack([y.real, y.imag], -1).astype(np.float32)]
    d.expect = expect


@op
def STFT(d):
    d.opset, n = 17, d.r.randint(8, 24)
    size, step = d.r.randint(2, 8), d.r.randint(1, 5)
    complex_in = d.chance(0.3)
    d.give(d.f(d.r.randint(1, 2), n, 2 if complex_in else 1))
    d.give(np.array(step), True)
    window = d.chance(0.6)
    d.give(d.f(size)) if window else d.skip()
    if not window or d.chance(0.5):
        d.give(np.array(size), True)
    d.attrs["onesided"] = 0 if complex_in else d.pick(0, 1)
    d.judge = "numpy"

    def expect(xs):
        x, w = xs[0][..., 0] + (1j * xs[0][..., 1] if complex_in else 0), xs[1] if window else np.ones(size)
        frames = np.stack([x[:, i:i + size] * w for i in range(0, n - size + 1, step)], 1)
        y = np.fft.fft(frames, axis=2)[:, :, :size // 2 + 1 if d.attrs["onesided"] else size]
        return [np.stack([y.real, y.imag], -1).astype(np.float32)]
    d.expect = expect


# ---- selection ----

@op
def TopK(d):
    shape = d.ints(d.r.randint(1, 3), 1, 6)
    axis = d.r.randrange(len(shape))
    d.give(d.np.integers(-3, 4, shape).astype(d.pick(np.float32, np.int64, np.int32)))
    d.give(np.array([d.r.randint(0, shape[axis])]), True)
    d.attrs.update(axis=axis - (len(shape) if d.chance(0.3) else 0), largest=d.pick(0, 1), sorted=1)
    d.outputs = 2


@op
def CumSum(d):
    shape = d.ints(d.r.randint(1, 4), 1, 5)
    d.give(d.f(*shape) if d.chance(0.6) else d.np.integers(-9, 9, shape))
    d.give(np.array(d.r.randrange(-len(shape), len(shape))), True)
    d.maybe(exclusive=1, reverse=1)


@op
def Unique(d):
    shape = d.ints(d.r.randint(1, 3), 1, 4)
    d.give(d.np.integers(-2, 3, shape).astype(d.pick(np.float32, np.int64)))
    d.maybe(0.5, axis=d.r.randrange(-len(shape), len(shape)))
    d.attrs["sorted"] = d.pick(0, 1)
    d.outputs = 4


@op
def NonMaxSuppression(d):
    batch, classes, n = d.r.randint(1, 2), d.r.randint(1, 3), d.r.randint(1, 7)
    a, b = d.np.uniform(0, 5, (batch, n, 2)), d.np.uniform(0.5, 3, (batch, n, 2))
    center = d.pick(0, 1)
    boxes = np.concatenate([a, b], -1) if center else np.concatenate([a, a + b], -1)
    if not center and d.chance(0.4):
        boxes = boxes[..., [2, 1, 0, 3]]
    d.attrs["center_point_box"] = center
    d.give(boxes.astype(np.float32))
    d.give(d.np.permutation(batch * classes * n).reshape(batch, classes, n).astype(np.float32) / 10)
    for x in (np.array([d.r.randint(0, 4)]), np.array([d.pick(0.0, 0.3, 0.6)], np.float32), np.array([d.pick(0.0, 0.8)], np.float32)):
        if d.chance(0.25):
            break
        d.give(x, True)


@op
def Attention(d):
    d.opset = d.pick(23, 24)
    batch, group, kv, hd = d.r.randint(1, 2), d.pick(1, 2, 3), d.r.randint(1, 2), 2 * d.r.randint(1, 3)
    heads, q, k, vd = group * kv, d.r.randint(1, 4), d.r.randint(1, 5), d.r.randint(1, 4)
    packed, past = d.chance(0.4), d.r.randint(1, 3) if d.chance(0.35) else 0
    if packed:
        d.give(d.f(batch, q, heads * hd))
        d.give(d.f(batch, k, kv * hd))
        d.give(d.f(batch, k, kv * vd))
        d.attrs.update(q_num_heads=heads, kv_num_heads=kv)
    else:
        d.give(d.f(batch, heads, q, hd))
        d.give(d.f(batch, kv, k, hd))
        d.give(d.f(batch, kv, k, vd))
    total = past + k
    if d.chance(0.5):
        shape = d.pick((q, total), (1, 1, q, total), (batch, 1, q, total), (batch, heads, q, total))
        mask = d.np.random(shape) < 0.7
        mask[..., 0] = True  # rows without any key: results are undefined
        d.give(mask if d.chance(0.4) else d.f(*shape))
    elif past:
        d.skip()
    if past:
        d.give(d.f(batch, kv, past, hd))
        d.give(d.f(batch, kv, past, vd))
    d.maybe(0.4, is_causal=1, scale=0.3, softcap=2.0)
    d.outputs = 3 if past else 1
    if d.chance(0.3):
        d.outputs, d.attrs["qk_matmul_output_mode"] = 4, d.r.randint(1 if "softcap" in d.attrs else 0, 3)
        d.attrs.pop("is_causal", None)  # the reference returns NaN, and ONNX Runtime lacks the output


# ---- comparison ----

def model_of(name, d):
    outs = [f"y{i}" for i in range(d.outputs)]
    keep = outs if d.outputs != 4 or name != "Attention" else ["y0", "", "", "y3"]
    node = helper.make_node(name, d.inputs, keep, **d.attrs)
    ins = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in d.data.items()]
    graph = helper.make_graph([node], "g", ins, [helper.make_empty_tensor_value_info(o) for o in keep if o],
                              [numpy_helper.from_array(v, k) for k, v in d.init.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", d.opset)], ir_version=10)


def expected(d, model):
    if d.judge == "numpy":
        return d.expect([d.data[i] for i in d.inputs if i in d.data])
    if d.judge == "onnx":
        from onnx.reference import ReferenceEvaluator
        return ReferenceEvaluator(model).run(None, d.data)
    return oracle.session(model.SerializeToString(), optimise=False, threads=1).run(None, d.data)


def compare(have, want):
    for i, (x, y) in enumerate(zip(have, want)):
        y = np.asarray(y)
        if x.shape != y.shape:
            return f"output {i} has shape {x.shape}, expected {y.shape}"
        if x.dtype.kind in "iub":
            if (x != y).any():
                return f"output {i} differs: {x.ravel()[:8]} expected {y.ravel()[:8]}"
        elif not np.allclose(x, y, RTOL, ATOL, equal_nan=True):
            at = np.unravel_index(np.nanargmax(np.abs(np.where(np.isfinite(x - y), x - y, 0))), x.shape)
            return f"output {i} at {tuple(map(int, at))}: {x[at]!r}, expected {y[at]!r}"
    return None


def one(name, seed, engine):
    """Returns None if all results agree, else (kind, text)."""
    d = Draw(int.from_bytes(f"{name}{seed}".encode(), "little"))
    if OPS[name](d) is False:
        return "drawn in vain", ""
    model = model_of(name, d)
    try:
        want = expected(d, model)
    except Exception as e:
        d.judge = "onnx"
        try:
            want = expected(d, model)
        except Exception:
            return "judge refuses", str(e)[-90:]
    try:
        have = run(model, d, engine)
    except ingot.Unsupported as e:
        return "ingot refuses", str(e)
    except ingot.Error as e:
        return "FAILED", f"{e}; opset {d.opset} {d.attrs} {[v.shape for v in d.data.values()]}"
    wrong = compare(have, want)
    if wrong and d.judge == "ort":  # the two references differ, so either may be right
        try:
            d.judge = "onnx"
            wrong = wrong and compare(have, expected(d, model)) and wrong
        except Exception:
            pass
    if wrong:
        kept = {k: v.tolist() for k, v in d.init.items() if v.size < 20}
        return "FAILED", f"{wrong}; opset {d.opset} {d.attrs} {[v.shape for v in d.data.values()]} {kept} {d.inputs}"
    return None


def run(model, d, engine):
    return list(ingot.compile(model, engine=engine, march="scalar", lazy=True).run(d.data).values())


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=30)
    p.add_argument("--ops", default=",".join(OPS))
    p.add_argument("--engine", default="interp")
    p.add_argument("--most", type=int, default=3, help="failures shown of each operator")
    a = p.parse_args()
    warnings.simplefilter("ignore")
    bad = 0
    for name in a.ops.split(","):
        count, shown, said = Counter(), 0, Counter()
        for seed in range(a.seed, a.seed + a.count):
            r = one(name, seed, a.engine)
            count[r[0] if r else "equal"] += 1
            if r and r[0] in ("ingot refuses", "judge refuses"):
                said[f"{r[0]}: {r[1]}"] += 1
            if r and r[0] == "FAILED":
                bad += 1
                shown += 1
                if shown <= a.most:
                    print(f"FAILED {name} {seed}: {r[1]}")
        print(f"{name}: " + ", ".join(f"{n} {k}" for k, n in sorted(count.items())), flush=True)
        for text, n in said.most_common(3):
            print(f"  {n} x {text}")
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()
