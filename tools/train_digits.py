#!/usr/bin/env python3
"""Train the built-in digit classifier; write models/digits.onnx and the images.

In:   scikit-learn's digits: 1,797 grey images of 8x8 pixels with values 0..16.
Out:  models/digits.onnx      image f32[batch,1,8,8] in 0..1 -> probability f32[batch,10]
      models/digits_test.bin  the 360 held-out images.
      models/digits_held.npz  the held-out images as arrays: image (pixels / 16) and label.
      models/digits_train.npz the 1,437 training images as arrays.

    python3 -m venv build/train && build/train/bin/pip install -r tools/requirements.txt
    build/train/bin/python tools/train_digits.py [--out DIR]

Format of digits_test.bin, no header: for N images, N*64 bytes of pixels (0..16, row by row, one
image after the other), then N bytes of labels (0..9). N is the file size divided by 65.

Method: minibatch SGD with Nesterov momentum on cross-entropy, images shifted sideways by up to one
pixel; forward and backward passes are written out below in numpy. The BatchNorm nodes stay in the
file unfolded, as exporters leave them, so that a compiler has something to fuse.

The same versions give the same bytes, whatever the CPU and the number of threads. Matrix products
differ in their last bits between machines; training would blow such differences up. So it runs in
float64 and every update rounds the weights to a multiple of 2^-16, which swallows them long before
they can reach the file. Initial weights are uniform and the generator is RandomState, whose
stream numpy has frozen.

Not here: choosing a model. Sizes and rates are constants, chosen by cross-validation inside the
training images; the held-out ones serve only for the figure printed at the end. They come from a
random split, so the same writers appear on both sides: the figure says that the network works, not
how it would do on strangers' handwriting.
"""

import argparse
import os
import sys

import numpy as np
import onnx
import onnxruntime
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

SEED = 1
HELD_OUT = 360
CHANNELS = (8, 16)  # small: the slowest engine, a tree walk, shall get through the demo too
EPOCHS = 40
BATCH = 50
RATE = 0.01  # falls to 0 along a half cosine
MOMENTUM = 0.9
DECAY = 5e-4
GRID = 2.0**16  # weights are multiples of 1 / GRID
EPSILON = 1e-5  # epsilon of BatchNorm
ACCURACY = 0.98  # below this nothing is written


# ---- layers: each forward returns (output, what its backward needs) ----


def conv(x, w):
    """3x3, padding 1, no bias. x [n,ci,h,w], w [co,ci,3,3] -> [n,co,h,w]"""
    n, ci, h, wd = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = sliding_window_view(padded, (3, 3), axis=(2, 3))  # [n,ci,h,w,3,3]
    rows = windows.transpose(0, 2, 3, 1, 4, 5).reshape(n * h * wd, ci * 9)
    y = rows @ w.reshape(len(w), -1).T
    return y.reshape(n, h, wd, len(w)).transpose(0, 3, 1, 2), (rows, x.shape, w)


def conv_back(dy, saved):
    """-> dx, dw"""
    rows, (n, ci, h, wd), w = saved
    dy = dy.transpose(0, 2, 3, 1).reshape(n * h * wd, len(w))
    dw = (dy.T @ rows).reshape(w.shape)
    drows = (dy @ w.reshape(len(w), -1)).reshape(n, h, wd, ci, 3, 3)
    dx = np.zeros((n, ci, h + 2, wd + 2))
    for i in range(3):
        for j in range(3):
            dx[:, :, i : i + h, j : j + wd] += drows[..., i, j].transpose(0, 3, 1, 2)
    return dx[:, :, 1:-1, 1:-1], dw


def channel(v):
    """[c] -> [1,c,1,1]"""
    return v[None, :, None, None]


def norm(x, scale, bias, mean=None, var=None):
    """Batch normalization; takes the statistics of x itself when none are given."""
    if mean is None:
        mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
    inv = 1 / np.sqrt(var + EPSILON)
    unit = (x - channel(mean)) * channel(inv)
    return unit * channel(scale) + channel(bias), (unit, inv, scale)


def norm_back(dy, saved):
    """-> dx, dscale, dbias"""
    unit, inv, scale = saved
    dbias, dscale = dy.sum((0, 2, 3)), (dy * unit).sum((0, 2, 3))
    count = dy.size // len(scale)
    dx = dy - channel(dbias / count) - unit * channel(dscale / count)
    return dx * channel(scale * inv), dscale, dbias


def pool(x):
    """Largest of each 2x2 block; ties go to the first."""
    n, c, h, w = x.shape
    blocks = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5)
    blocks = blocks.reshape(n, c, h // 2, w // 2, 4)
    best = blocks.argmax(-1)[..., None]
    return np.take_along_axis(blocks, best, -1)[..., 0], (best, x.shape)


def pool_back(dy, saved):
    best, (n, c, h, w) = saved
    dx = np.zeros((n, c, h // 2, w // 2, 4))
    np.put_along_axis(dx, best, dy[..., None], -1)
    dx = dx.reshape(n, c, h // 2, w // 2, 2, 2).transpose(0, 1, 2, 4, 3, 5)
    return dx.reshape(n, c, h, w)


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


# ---- the network ----


def initial(rng):
    """Weights by name, in the order of the file; uniform with the variance of He et al. 2015."""

    def uniform(*shape):
        bound = np.sqrt(6 / np.prod(shape[1:]))
        return rng.uniform(-bound, bound, shape)

    c1, c2 = CHANNELS
    weights = {
        "conv1.weight": uniform(c1, 1, 3, 3),
        "bn1.scale": np.ones(c1),
        "bn1.bias": np.zeros(c1),
        "conv2.weight": uniform(c2, c1, 3, 3),
        "bn2.scale": np.ones(c2),
        "bn2.bias": np.zeros(c2),
        "fc.weight": uniform(10, c2 * 16) / 4,
        "fc.bias": np.zeros(10),
    }
    return {name: snap(w) for name, w in weights.items()}


def snap(w):
    return np.rint(w * GRID) / GRID


def gradients(w, x, labels):
    """Gradient of the mean cross-entropy over x [n,1,8,8] for every weight."""
    a1, s_conv1 = conv(x, w["conv1.weight"])
    a1, s_bn1 = norm(a1, w["bn1.scale"], w["bn1.bias"])
    h1 = np.maximum(a1, 0)
    a2, s_conv2 = conv(h1, w["conv2.weight"])
    a2, s_bn2 = norm(a2, w["bn2.scale"], w["bn2.bias"])
    h2, s_pool = pool(np.maximum(a2, 0))
    flat = h2.reshape(len(x), -1)
    d = softmax(flat @ w["fc.weight"].T + w["fc.bias"])

    g = {}
    d[np.arange(len(x)), labels] -= 1
    d /= len(x)
    g["fc.weight"], g["fc.bias"] = d.T @ flat, d.sum(0)
    d = pool_back((d @ w["fc.weight"]).reshape(h2.shape), s_pool) * (a2 > 0)
    d, g["bn2.scale"], g["bn2.bias"] = norm_back(d, s_bn2)
    d, g["conv2.weight"] = conv_back(d, s_conv2)
    d, g["bn1.scale"], g["bn1.bias"] = norm_back(d * (a1 > 0), s_bn1)
    _, g["conv1.weight"] = conv_back(d, s_conv1)
    return g


def statistics(w, x):
    """The means and variances that BatchNorm uses after training: those of the training images."""
    a1, _ = conv(x, w["conv1.weight"])
    mean1, var1 = a1.mean((0, 2, 3)), a1.var((0, 2, 3))
    h1 = np.maximum(norm(a1, w["bn1.scale"], w["bn1.bias"], mean1, var1)[0], 0)
    a2, _ = conv(h1, w["conv2.weight"])
    mean2, var2 = a2.mean((0, 2, 3)), a2.var((0, 2, 3))
    found = {"bn1.mean": mean1, "bn1.var": var1, "bn2.mean": mean2, "bn2.var": var2}
    return {name: snap(v) for name, v in found.items()}


def predict(w, x):
    """Probabilities [n,10], as the exported model computes them."""
    for i in ("1", "2"):
        x, _ = conv(x, w[f"conv{i}.weight"])
        bn = [w[f"bn{i}.{part}"] for part in ("scale", "bias", "mean", "var")]
        x = np.maximum(norm(x, *bn)[0], 0)
    flat = pool(x)[0].reshape(len(x), -1)
    return softmax(flat @ w["fc.weight"].T + w["fc.bias"])


def shifted(x, rng):
    """Each image shifted sideways by -1, 0 or 1 pixels, filled with blanks. Vertical shifts would cut most digits, which fill all eight rows."""
    padded = np.pad(x, ((0, 0), (0, 0), (0, 0), (1, 1)))
    by = rng.randint(0, 3, len(x))
    return np.stack([p[:, :, j : j + 8] for p, j in zip(padded, by)])


def train(x, labels, rng):
    w = initial(rng)
    speed = {name: np.zeros_like(v) for name, v in w.items()}
    steps = EPOCHS * (len(x) // BATCH)
    done = 0
    while done < steps:
        order = rng.permutation(len(x))
        for start in range(0, len(x) - BATCH + 1, BATCH):
            pick = order[start : start + BATCH]
            g = gradients(w, shifted(x[pick], rng), labels[pick])
            rate = RATE * 0.5 * (1 + np.cos(np.pi * done / steps))
            for name in w:
                slope = g[name] + DECAY * w[name]
                speed[name] = MOMENTUM * speed[name] + slope
                w[name] = snap(w[name] - rate * (slope + MOMENTUM * speed[name]))
            done += 1
    w.update(statistics(w, x))
    return w


# ---- files ----


def model(w):
    def node(op, ins, out, **attributes):
        return helper.make_node(op, ins, [out], name=out, **attributes)

    nodes, x = [], "image"
    for i in ("1", "2"):
        bn = [f"bn{i}.{part}" for part in ("scale", "bias", "mean", "var")]
        nodes += [
            node("Conv", [x, f"conv{i}.weight"], f"conv{i}", kernel_shape=[3, 3], pads=[1] * 4),
            node("BatchNormalization", [f"conv{i}"] + bn, f"bn{i}", epsilon=EPSILON),
            node("Relu", [f"bn{i}"], f"relu{i}"),
        ]
        x = f"relu{i}"
    nodes += [
        node("MaxPool", [x], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", ["pool"], "flat", axis=1),
        node("Gemm", ["flat", "fc.weight", "fc.bias"], "fc", transB=1),
        node("Softmax", ["fc"], "probability", axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info("probability", TensorProto.FLOAT, ["batch", 10])],
        [numpy_helper.from_array(v.astype("<f4"), name) for name, v in w.items()],
    )
    opset = [helper.make_opsetid("", 17)]
    made = helper.make_model(graph, ir_version=8, opset_imports=opset, producer_name="ingot")
    onnx.checker.check_model(made, full_check=True)
    return made.SerializeToString()


def agrees(data, x, expected):
    """Checks that ONNX Runtime gives the result of predict() for the exported file."""
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    for n in (1, 7, len(x)):
        (got,) = session.run(None, {"image": x[:n].astype(np.float32)})
        if not np.allclose(got, expected[:n], rtol=1e-4, atol=1e-6):
            return False
    return True


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    options = argparse.ArgumentParser(description="Train the built-in digit classifier.")
    options.add_argument("--out", default=os.path.join(here, "..", "models"), help="folder")
    out = options.parse_args().out

    rng = np.random.RandomState(SEED)
    digits = load_digits()
    order = rng.permutation(len(digits.target))
    images, labels = digits.images[order], digits.target[order]
    x = images[:, None] / 16.0
    w = train(x[HELD_OUT:], labels[HELD_OUT:], rng)

    probability = predict(w, x[:HELD_OUT])
    right = int((probability.argmax(1) == labels[:HELD_OUT]).sum())
    seen = (predict(w, x[HELD_OUT:]).argmax(1) == labels[HELD_OUT:]).mean()
    print(f"training images: {100 * seen:.2f} % right")
    print(f"held-out images: {100 * right / HELD_OUT:.2f} % right, {right} of {HELD_OUT}")
    if right < ACCURACY * HELD_OUT:
        sys.exit(f"error: accuracy below {ACCURACY}: nothing written")

    data = model(w)
    if not agrees(data, x[:HELD_OUT], probability):
        sys.exit("error: ONNX Runtime and this script disagree: nothing written")
    test = b"".join(a[:HELD_OUT].astype(np.uint8).tobytes() for a in (images, labels))
    os.makedirs(out, exist_ok=True)
    for name, content in (("digits.onnx", data), ("digits_test.bin", test)):
        with open(os.path.join(out, name), "wb") as file:
            file.write(content)
        print(f"{name}: {len(content)} bytes")
    for name, part in (("digits_held.npz", slice(HELD_OUT)), ("digits_train.npz", slice(HELD_OUT, None))):
        np.savez_compressed(os.path.join(out, name), image=x[part].astype(np.float32), label=labels[part].astype(np.uint8))


if __name__ == "__main__":
    main()
