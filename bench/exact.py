"""Evaluates the benchmark networks in double with numpy: the reference for float32 engines.

    run(path, feed) -> {output: array}

Every float tensor becomes float64, weights included (their values are those of the file); integers stay. Written for clarity and for being
independent of every engine measured; an operator that is not here raises KeyError with its name. QuantizeLinear rounds in double,
so a value that float32 puts on the other side of a half step differs by one step.
"""
import math

import numpy as np
import onnx
from onnx import numpy_helper

ERF = np.vectorize(math.erf, otypes=[np.float64])


def windows(x, k, s, d, out):
    """A view N x C x kh x kw x oh x ow of a padded image."""
    n, c, _, _ = x.shape
    st = x.strides
    return np.lib.stride_tricks.as_strided(x, (n, c, k[0], k[1], out[0], out[1]),
                                           (st[0], st[1], st[2] * d[0], st[3] * d[1], st[2] * s[0], st[3] * s[1]), writeable=False)


def padded(x, a, k, s, d, fill, ceil=0):
    """(padded image, output extents) by the attributes of Conv and the pools."""
    p = a.get("pads", [0, 0, 0, 0])
    if a.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        p = [0] * 4
        for i in range(2):
            size = x.shape[2 + i]
            total = max(0, (-(-size // s[i]) - 1) * s[i] + d[i] * (k[i] - 1) + 1 - size)
            low = total // 2 if a["auto_pad"] == "SAME_UPPER" else total - total // 2
            p[i], p[2 + i] = low, total - low
    out, more = [], [0, 0]
    for i in range(2):
        free = x.shape[2 + i] + p[i] + p[2 + i] - d[i] * (k[i] - 1) - 1
        n = (-(-free // s[i]) if ceil else free // s[i]) + 1
        if ceil and (n - 1) * s[i] >= x.shape[2 + i] + p[i]:
            n -= 1
        more[i] = max(0, (n - 1) * s[i] - free)
        out.append(n)
    return np.pad(x, ((0, 0), (0, 0), (p[0], p[2] + more[0]), (p[1], p[3] + more[1])), constant_values=fill), out


def conv(a, x, w, b=None):
    line = x.ndim == 3
    if line:
        x, w = x[:, :, None], w[:, :, None]
        a = {k: ([0, v[0], 0, v[1]] if k == "pads" else [1, *v]) if k in ("pads", "strides", "dilations") else v for k, v in a.items()}
    k, s, d, g = w.shape[2:], a.get("strides", [1, 1]), a.get("dilations", [1, 1]), a.get("group", 1)
    x, out = padded(x, a, k, s, d, 0.0)
    v = windows(x, k, s, d, out)
    n, m = x.shape[0], w.shape[0]
    if g == x.shape[1] and w.shape[1] == 1 and m == g:
        y = np.einsum("ncijhw,cij->nchw", v, w[:, 0], optimize=False)
    else:
        part = x.shape[1] // g
        y = np.concatenate([np.tensordot(w[i * m // g:(i + 1) * m // g], v[:, i * part:(i + 1) * part], ([1, 2, 3], [1, 2, 3]))
                            for i in range(g)]).transpose(1, 0, 2, 3)
    y = y if b is None else y + b[:, None, None]
    return y.reshape(n, m, *out)[:, :, 0] if line else y


def deconv(a, x, w, b=None):
    s, p, k = a.get("strides", [1, 1]), a.get("pads", [0] * 4), w.shape[2:]
    if a.get("group", 1) != 1 or a.get("output_padding") or a.get("output_shape"):
        raise KeyError("ConvTranspose of this kind")
    n, _, h, wd = x.shape
    y = np.zeros((n, w.shape[1], (h - 1) * s[0] + k[0], (wd - 1) * s[1] + k[1]))
    for i in range(k[0]):
        for j in range(k[1]):
            y[:, :, i:i + (h - 1) * s[0] + 1:s[0], j:j + (wd - 1) * s[1] + 1:s[1]] += np.einsum("nchw,cm->nmhw", x, w[:, :, i, j], optimize=True)
    y = y[:, :, p[0]:y.shape[2] - p[2], p[1]:y.shape[3] - p[3]]
    return y if b is None else y + b[:, None, None]


def pool(a, x, how):
    k, s, d = a["kernel_shape"], a.get("strides", [1, 1]), a.get("dilations", [1, 1])
    if how == "max":
        x, out = padded(x, a, k, s, d, -np.inf, a.get("ceil_mode", 0))
        return windows(x, k, s, d, out).max((2, 3))
    ones, _ = padded(np.ones_like(x), a, k, s, d, float(a.get("count_include_pad", 0)), a.get("ceil_mode", 0))
    x, out = padded(x, a, k, s, d, 0.0, a.get("ceil_mode", 0))
    return windows(x, k, s, d, out).sum((2, 3)) / windows(ones, k, s, d, out).sum((2, 3))


def resize(a, x, roi=None, scales=None, sizes=None):
    """Nearest (asymmetric, floor) and linear, one axis at a time."""
    mode, how = a.get("mode", "nearest"), a.get("coordinate_transformation_mode", "half_pixel")
    for axis in range(x.ndim):
        old = x.shape[axis]
        new = int(sizes[axis]) if sizes is not None and sizes.size else int(math.floor(old * scales[axis]))
        if new == old:
            continue
        scale = float(scales[axis]) if scales is not None and scales.size else new / old
        i = np.arange(new)
        if how == "asymmetric":
            at = i / scale
        elif how == "align_corners":
            at = i * (old - 1) / max(1, new - 1)
        else:
            at = (i + 0.5) / scale - 0.5 if new > 1 or how == "half_pixel" else np.zeros(1)
        if mode == "nearest":
            near = a.get("nearest_mode", "round_prefer_floor")
            at = np.floor(at) if near == "floor" else np.ceil(at - 0.5) if near == "round_prefer_floor" else np.floor(at + 0.5)
            x = x.take(np.clip(at, 0, old - 1).astype(int), axis)
        else:
            low = np.floor(at).astype(int)
            part = (at - low).reshape([-1 if j == axis else 1 for j in range(x.ndim)])
            x = x.take(np.clip(low, 0, old - 1), axis) * (1 - part) + x.take(np.clip(low + 1, 0, old - 1), axis) * part
    return x


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def recurrent(a, gates, x, w, r, b=None, lens=None, h0=None, c0=None):
    """LSTM (four gates i, o, f, c) and GRU (three, z, r, h) with the usual activations."""
    steps, batch, n = x.shape[0], x.shape[1], a["hidden_size"]
    ways = w.shape[0]
    y = np.zeros((steps, ways, batch, n))
    last_h, last_c = [], []
    for d in range(ways):
        reverse = d == 1 or a.get("direction") == "reverse"
        h = h0[d] if h0 is not None else np.zeros((batch, n))
        c = c0[d] if c0 is not None else np.zeros((batch, n))
        bw, br = (b[d][:gates * n], b[d][gates * n:]) if b is not None else (0.0, 0.0)
        for t in range(steps)[::-1] if reverse else range(steps):
            p, q = x[t] @ w[d].T + bw, h @ r[d].T + br
            if gates == 4:
                i, o, f, g = np.split(p + q, 4, 1)
                c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
                h = sigmoid(o) * np.tanh(c)
            else:
                z, s = sigmoid(p[:, :n] + q[:, :n]), sigmoid(p[:, n:2 * n] + q[:, n:2 * n])
                if a.get("linear_before_reset"):
                    g = p[:, 2 * n:] + s * q[:, 2 * n:]
                else:
                    g = p[:, 2 * n:] + (s * h) @ r[d][2 * n:].T + (br[2 * n:] if b is not None else 0)
                h = (1 - z) * np.tanh(g) + z * h
            y[t, d] = h
        last_h.append(h)
        last_c.append(c)
    return (y, np.stack(last_h), np.stack(last_c))[:3 if gates == 4 else 2]


def norm_layer(a, x, scale, bias=0.0):
    axes = tuple(range(a.get("axis", -1) % x.ndim, x.ndim))
    m = x.mean(axes, keepdims=True)
    v = ((x - m) ** 2).mean(axes, keepdims=True)
    return (x - m) / np.sqrt(v + a.get("epsilon", 1e-5)) * scale + bias


def norm_batch(a, x, scale, bias, mean, var):
    by = (-1, *[1] * (x.ndim - 2))
    f = scale / np.sqrt(var + a.get("epsilon", 1e-5))
    return x * f.reshape(by) + (bias - mean * f).reshape(by)


def softmax(a, x):
    axis = a.get("axis", -1)
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def gemm(a, x, w, c=0.0):
    x, w = x.T if a.get("transA") else x, w.T if a.get("transB") else w
    return a.get("alpha", 1.0) * (x @ w) + a.get("beta", 1.0) * c


def cut(a, x, starts, ends, axes=None, steps=None):
    at = [slice(None)] * x.ndim
    for i, s in enumerate(starts):
        axis, step, e = int(axes[i]) if axes is not None else i, int(steps[i]) if steps is not None else 1, int(ends[i])
        at[axis] = slice(int(s), None if step < 0 and e < -x.shape[axis] else e, step)
    return x[tuple(at)]


def reduced(f):
    def go(a, x, axes=None):
        axes = a.get("axes") if axes is None else axes
        return f(x, axis=None if axes is None else tuple(int(i) for i in axes), keepdims=bool(a.get("keepdims", 1)))
    return go


def reshape(a, x, shape):
    return x.reshape([x.shape[i] if s == 0 else int(s) for i, s in enumerate(shape)])


def split(a, x, sizes=None):
    sizes = a.get("split") if sizes is None else sizes
    axis = a.get("axis", 0)
    if sizes is None:
        return tuple(np.array_split(x, a["outs"], axis))
    return tuple(np.split(x, np.cumsum(sizes)[:-1], axis))


def by_axis(v, x, axis):
    return v.reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)]) if np.ndim(v) == 1 and np.size(v) > 1 else v


def quantize(a, x, scale, zero=None):
    kind = np.uint8 if zero is None else zero.dtype
    axis = a.get("axis", 1)
    z = 0.0 if zero is None else by_axis(zero.astype(np.float64), x, axis)
    lim = np.iinfo(kind)
    return np.clip(np.rint(x / by_axis(scale, x, axis)) + z, lim.min, lim.max).astype(kind)


def dequantize(a, x, scale, zero=None):
    axis = a.get("axis", 1)
    z = 0.0 if zero is None else by_axis(zero.astype(np.float64), x, axis)
    return (x.astype(np.float64) - z) * by_axis(scale, x, axis)


def pad(a, x, pads, value=0.0, axes=None):
    n = len(pads) // 2
    by = [(0, 0)] * x.ndim
    for i in range(n):
        by[int(axes[i]) if axes is not None else i] = (int(pads[i]), int(pads[n + i]))
    mode = a.get("mode", "constant")
    return np.pad(x, by, mode, **({"constant_values": value} if mode == "constant" else {}))


def cast(a, x):
    kind = onnx.helper.tensor_dtype_to_np_dtype(a["to"])
    return x.astype(np.float64 if kind.kind == "f" else kind)


OPS = {
    "Identity": lambda a, x: x, "Add": lambda a, x, y: x + y, "Sub": lambda a, x, y: x - y, "Mul": lambda a, x, y: x * y,
    "Div": lambda a, x, y: x / y if x.dtype.kind == "f" else x // y, "Pow": lambda a, x, y: x ** y, "Sqrt": lambda a, x: np.sqrt(x),
    "Exp": lambda a, x: np.exp(x), "Log": lambda a, x: np.log(x), "Neg": lambda a, x: -x, "Tanh": lambda a, x: np.tanh(x),
    "Erf": lambda a, x: ERF(x), "Sigmoid": lambda a, x: sigmoid(x), "Relu": lambda a, x: np.maximum(x, 0), "Reciprocal": lambda a, x: 1 / x,
    "Max": lambda a, *x: np.maximum.reduce(np.broadcast_arrays(*x)), "Min": lambda a, *x: np.minimum.reduce(np.broadcast_arrays(*x)),
    "Clip": lambda a, x, lo=None, hi=None: np.clip(x, a.get("min", lo), a.get("max", hi)),
    "HardSigmoid": lambda a, x: np.clip(a.get("alpha", 0.2) * x + a.get("beta", 0.5), 0, 1),
    "HardSwish": lambda a, x: x * np.clip(x / 6 + 0.5, 0, 1), "Softmax": softmax, "MatMul": lambda a, x, y: x @ y, "Gemm": gemm,
    "Conv": conv, "ConvTranspose": deconv, "BatchNormalization": norm_batch, "LayerNormalization": norm_layer,
    "MaxPool": lambda a, x: pool(a, x, "max"), "AveragePool": lambda a, x: pool(a, x, "mean"),
    "GlobalAveragePool": lambda a, x: x.mean(tuple(range(2, x.ndim)), keepdims=True),
    "GlobalMaxPool": lambda a, x: x.max(tuple(range(2, x.ndim)), keepdims=True),
    "ReduceMean": reduced(np.mean), "ReduceSum": reduced(np.sum), "ReduceMax": reduced(np.max), "ReduceMin": reduced(np.min),
    "Gather": lambda a, x, i: np.take(x, i, a.get("axis", 0)), "Slice": cut, "Concat": lambda a, *x: np.concatenate(x, a["axis"]),
    "Split": split, "Reshape": reshape, "Transpose": lambda a, x: x.transpose(a.get("perm")),
    "Flatten": lambda a, x: x.reshape(int(np.prod(x.shape[:a.get("axis", 1)])), -1),
    "Unsqueeze": lambda a, x, axes=None: np.expand_dims(x, tuple(int(i) for i in (a["axes"] if axes is None else axes))),
    "Squeeze": lambda a, x, axes=None: np.squeeze(x, None if axes is None and "axes" not in a else
                                                  tuple(int(i) for i in (a["axes"] if axes is None else axes))),
    "Shape": lambda a, x: np.array(x.shape), "Pad": pad, "Cast": cast, "Resize": resize,
    "LSTM": lambda a, *x: recurrent(a, 4, *x), "GRU": lambda a, *x: recurrent(a, 3, *x), "QuantizeLinear": quantize, "DequantizeLinear": dequantize,
    "Expand": lambda a, x, s: x * np.ones([int(i) for i in s], x.dtype), "Equal": lambda a, x, y: x == y,
    "Where": lambda a, c, x, y: np.where(c, x, y), "ConstantOfShape": lambda a, s: np.full([int(i) for i in s], a.get("value", np.zeros(1))[0]),
}


def wide(x):
    return x.astype(np.float64) if x.dtype.kind == "f" else x


def attributes(n):
    found = {"outs": len(n.output)}
    for a in n.attribute:
        v = onnx.helper.get_attribute_value(a)
        found[a.name] = wide(numpy_helper.to_array(v)) if isinstance(v, onnx.TensorProto) else v.decode() if isinstance(v, bytes) else v
    return found


def run(path, feed):
    g = onnx.load(path).graph
    values = {i.name: wide(numpy_helper.to_array(i)) for i in g.initializer}
    values.update({k: wide(v) for k, v in feed.items()})
    last = {v: i for i, n in enumerate(g.node) for v in n.input}
    keep = {o.name for o in g.output}
    with np.errstate(all="ignore"):
        for i, n in enumerate(g.node):
            a = attributes(n)
            if n.op_type == "Constant":
                got = a["value"]
            else:
                got = OPS[n.op_type](a, *[values[v] if v else None for v in n.input])
            for name, v in zip(n.output, got if isinstance(got, tuple) else (got,)):
                values[name] = v
            for v in n.input:
                if last.get(v) == i and v not in keep:
                    values.pop(v, None)
    return {o.name: values[o.name] for o in g.output}
