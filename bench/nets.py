"""Networks for images, written as exporters write them: bench/nets.py NAME... writes them into build/bench/nets; no name lists all.

The architectures are the published ones, layer by layer (depth, width, strides, where activations and squeeze-excite blocks sit),
at 224x224 unless said. Batch normalization is folded into the convolution before it, as both exporters of torch do, except
where nothing precedes it (DenseNet) and in U-Net, which keeps it as a training graph would.
"""
import os
import sys

import numpy as np

import nets_file  # noqa: F401  (registers its networks)
import nets_text  # noqa: F401  (registers its networks)
from netlib import NETS, Net, net

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.path.join(ROOT, "build", "bench", "nets")
# ---- residual networks ----

def basic(n, x, c, s):
    y = n.conv(n.conv(x, c, 3, s, act=n.relu), c, 3, gain=0.3)
    skip = n.conv(x, c, 1, s, gain=1.0) if s > 1 or n.c[x] != c else x
    return n.relu(n.add(y, skip))


def bottleneck(n, x, c, s):
    y = n.conv(n.conv(n.conv(x, c, act=n.relu), c, 3, s, act=n.relu), 4 * c, gain=0.3)
    skip = n.conv(x, 4 * c, 1, s, gain=1.0) if s > 1 or n.c[x] != 4 * c else x
    return n.relu(n.add(y, skip))


def resnet(n, block, depths):
    x = n.maxpool(n.conv(n.image(1, 3, 224, 224), 64, 7, 2, act=n.relu), 3, 2, 1)
    for i, depth in enumerate(depths):
        for j in range(depth):
            x = block(n, x, 64 << i, 2 if i and not j else 1)
    n.head(x)


@net("resnet18", "ResNet-18", at_least=(1.7, 1.1), aim=(2.2, 1.45), gmac=1.81)
def resnet18(n):
    resnet(n, basic, (2, 2, 2, 2))


@net("resnet50", "ResNet-50", at_least=(1.2, 1.05), aim=(1.35, 1.2), gmac=4.09)
def resnet50(n):
    resnet(n, bottleneck, (3, 4, 6, 3))


# ---- inverted residuals ----

def inverted(n, x, expand, c, s, k, act, squeeze=None, d=1):
    """Expand, depthwise, squeeze-excite, project; expand is the number of hidden channels."""
    cin = n.c[x]
    y = n.conv(x, expand, act=act) if expand != cin else x
    y = n.conv(y, expand, k, s, g=expand, d=d, act=act)
    if squeeze:
        y = squeeze(n, y, cin)
    y = n.conv(y, c, gain=1.0)
    return n.add(x, y) if s == 1 and cin == c else y


def divisible(c, by=8):
    m = max(by, int(c + by / 2) // by * by)
    return m + by if m < 0.9 * c else m


@net("mobilenetv2", "MobileNetV2", at_least=(1.2, 1.1), aim=(1.4, 1.28), gmac=0.30)
def mobilenetv2(n):
    x = n.conv(n.image(1, 3, 224, 224), 32, 3, 2, act=n.relu6)
    for t, c, repeat, s in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(repeat):
            x = inverted(n, x, t * n.c[x], c, s if i == 0 else 1, 3, n.relu6)
    n.head(n.conv(x, 1280, act=n.relu6))


# ---- squeeze-excite ----

def squeeze(act, gate, width):
    """A squeeze-excite block: width(hidden, cin) is how many channels the inner convolution has."""
    def block(n, y, cin):
        c = n.c[y]
        z = n.conv(n.op("GlobalAveragePool", y), width(c, cin), act=act)
        return n.op("Mul", y, gate(n.conv(z, c, gain=1.0)))
    return block


def v3_squeeze(n):
    return squeeze(n.relu, lambda z: n.op("HardSigmoid", z, alpha=1 / 6, beta=0.5), lambda c, _: divisible(c // 4))


LARGE = ((3, 16, 16, 0, 0, 1), (3, 64, 24, 0, 0, 2), (3, 72, 24, 0, 0, 1), (5, 72, 40, 1, 0, 2), (5, 120, 40, 1, 0, 1), (5, 120, 40, 1, 0, 1),
         (3, 240, 80, 0, 1, 2), (3, 200, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1), (3, 480, 112, 1, 1, 1),
         (3, 672, 112, 1, 1, 1), (5, 672, 160, 1, 1, 2), (5, 960, 160, 1, 1, 1), (5, 960, 160, 1, 1, 1))
SMALL = ((3, 16, 16, 1, 0, 2), (3, 72, 24, 0, 0, 2), (3, 88, 24, 0, 0, 1), (5, 96, 40, 1, 1, 2), (5, 240, 40, 1, 1, 1), (5, 240, 40, 1, 1, 1),
         (5, 120, 48, 1, 1, 1), (5, 144, 48, 1, 1, 1), (5, 288, 96, 1, 1, 2), (5, 576, 96, 1, 1, 1), (5, 576, 96, 1, 1, 1))


def v3_features(n, blocks, dilate=False):
    """The backbone of MobileNetV3; dilate: the last three blocks use dilation instead of stride."""
    se = v3_squeeze(n)
    x = n.conv(n.image(1, 3, 224, 224), 16, 3, 2, act=n.hardswish)
    for i, (k, hidden, c, has_se, hs, s) in enumerate(blocks):
        d = 2 if dilate and i >= len(blocks) - 3 else 1
        x = inverted(n, x, hidden, c, 1 if d > 1 else s, k, n.hardswish if hs else n.relu, se if has_se else None, d)
    return n.conv(x, 6 * n.c[x], act=n.hardswish)


def v3(n, blocks, hidden):
    x = n.op("Flatten", n.op("GlobalAveragePool", v3_features(n, blocks)), axis=1)
    n.output(n.gemm(n.hardswish(n.gemm(x, hidden, 2.0)), 1000), "y")


@net("mobilenetv3-large", "MobileNetV3-large", at_least=(1.25, 1.2), aim=(1.45, 1.4), gmac=0.217)
def mobilenetv3_large(n):
    v3(n, LARGE, 1280)


@net("mobilenetv3-small", "MobileNetV3-small", at_least=(1.25, 1.2), aim=(1.5, 1.45), gmac=0.057)
def mobilenetv3_small(n):
    v3(n, SMALL, 1024)


@net("efficientnet-b0", "EfficientNet-B0", at_least=(1.35, 1.35), aim=(1.65, 1.65), gmac=0.386)
def efficientnet(n):
    se = squeeze(n.silu, lambda z: n.op("Sigmoid", z), lambda _, cin: max(1, cin // 4))
    x = n.conv(n.image(1, 3, 224, 224), 32, 3, 2, act=n.silu)
    for t, k, s, c, repeat in ((1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3), (6, 5, 2, 192, 4),
                               (6, 3, 1, 320, 1)):
        for i in range(repeat):
            x = inverted(n, x, t * n.c[x], c, s if i == 0 else 1, k, n.silu, se)
    n.head(n.conv(x, 1280, act=n.silu))


@net("deeplabv3", "DeepLabV3-MobileNetV3", at_least=(1.2, 1.2), aim=(1.5, 1.5), gmac=1.88)
def deeplab(n):
    x = v3_features(n, LARGE, dilate=True)
    parts = [n.conv(x, 256, act=n.relu)] + [n.conv(x, 256, 3, d=d, act=n.relu) for d in (12, 24, 36)]
    pooled = n.conv(n.op("GlobalAveragePool", x), 256, act=n.relu)
    parts.append(n.op("Resize", pooled, "", "", n.ints(1, 256, 14, 14), mode="linear", coordinate_transformation_mode="pytorch_half_pixel"))
    y = n.conv(n.conv(n.concat(*parts), 256, act=n.relu), 256, 3, act=n.relu)
    n.output(n.op("Resize", n.conv(y, 21, gain=1.0), "", "", n.ints(1, 21, 224, 224), mode="linear",
                  coordinate_transformation_mode="pytorch_half_pixel"), "y")


# ---- concatenations ----

@net("densenet121", "DenseNet-121", at_least=(1.25, 1.1), aim=(1.5, 1.35), gmac=2.84)
def densenet(n):
    def normed(x):
        return n.relu(n.batchnorm(x))

    x = n.maxpool(n.conv(n.image(1, 3, 224, 224), 64, 7, 2, act=n.relu), 3, 2, 1)
    for i, depth in enumerate((6, 12, 24, 16)):
        for _ in range(depth):
            y = n.conv(normed(x), 128, act=n.relu)
            x = n.concat(x, n.conv(y, 32, 3, bias=False, gain=1.0))
        if i < 3:
            x = n.conv(normed(x), n.c[x] // 2, bias=False, gain=2.0)
            x = n.op("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
    n.head(normed(x))


@net("squeezenet", "SqueezeNet 1.1", at_least=(1.4, 1.25), aim=(1.8, 1.6), gmac=0.349)
def squeezenet(n):
    x = n.conv(n.image(1, 3, 224, 224), 64, 3, 2, pad=0, act=n.relu)
    for fires in ((16, 16), (32, 32), (48, 48, 64, 64)):
        x = n.maxpool(x, 3, 2, ceil=1)
        for c in fires:
            y = n.conv(x, c, act=n.relu)
            x = n.concat(n.conv(y, 4 * c, act=n.relu), n.conv(y, 4 * c, 3, act=n.relu))
    x = n.conv(x, 1000, act=n.relu)
    n.output(n.op("Flatten", n.op("GlobalAveragePool", x), axis=1), "y")


@net("unet16", "U-Net 16 (256x256)", at_least=(1.9, 1.1), aim=(2.4, 1.35), gmac=3.03)
def unet(n):
    def twice(x, c):
        for _ in range(2):
            x = n.relu(n.batchnorm(n.conv(x, c, 3, bias=False)))
        return x

    x, skips = n.image(1, 3, 256, 256), []
    for c in (16, 32, 64, 128):
        skips.append(twice(x, c))
        x = n.maxpool(skips[-1], 2, 2)
    x = twice(x, 256)
    for skip in reversed(skips):
        x = twice(n.concat(n.deconv(x, n.c[skip]), skip), n.c[skip])
    n.output(n.conv(x, 1, gain=1.0), "y")


def c2f(n, x, c, repeat, skip=True):
    """C2f block: half of the channels pass through bottlenecks, and all intermediate results are concatenated."""
    parts = n.split(n.conv(x, c, act=n.silu), c // 2, c // 2)
    for _ in range(repeat):
        y = n.conv(n.conv(parts[-1], c // 2, 3, act=n.silu), c // 2, 3, act=n.silu)
        parts.append(n.add(parts[-1], y) if skip else y)
    return n.conv(n.concat(*parts), c, act=n.silu)


@net("yolo", "YOLO-like (320x320)", at_least=(1.4, 1.2), aim=(1.7, 1.5), gmac=0.90)
def yolo(n):
    x = n.conv(n.conv(n.image(1, 3, 320, 320), 16, 3, 2, act=n.silu), 32, 3, 2, act=n.silu)
    levels = [c2f(n, x, 32, 1)]
    for c, repeat in ((64, 2), (128, 2), (256, 1)):
        levels.append(c2f(n, n.conv(levels[-1], c, 3, 2, act=n.silu), c, repeat))
    pools = [n.conv(levels[3], 128, act=n.silu)]
    for _ in range(3):
        pools.append(n.maxpool(pools[-1], 5, 1, 2))
    p5 = n.conv(n.concat(*pools), 256, act=n.silu)
    p4 = c2f(n, n.concat(n.upsample(p5), levels[2]), 128, 1, False)
    p3 = c2f(n, n.concat(n.upsample(p4), levels[1]), 64, 1, False)
    p4 = c2f(n, n.concat(n.conv(p3, 64, 3, 2, act=n.silu), p4), 128, 1, False)
    p5 = c2f(n, n.concat(n.conv(p4, 128, 3, 2, act=n.silu), p5), 256, 1, False)
    boxes, scores = [], []
    for p, size in ((p3, 40), (p4, 20), (p5, 10)):
        for kind, width, c in ((boxes, 64, 64), (scores, 32, 80)):
            y = n.conv(n.conv(n.conv(p, width, 3, act=n.silu), width, 3, act=n.silu), c, gain=1.0)
            kind.append(n.reshape(y, 1, c, size * size, c=1))
    cells = np.concatenate([np.full(s * s, 320 / s) for s in (40, 20, 10)])
    centre = np.concatenate([np.stack([np.tile(np.arange(s) + 0.5, s), np.repeat(np.arange(s) + 0.5, s)]) for s in (40, 20, 10)], 1)
    bins = n.transpose(n.reshape(n.concat(*boxes, axis=2), 1, 4, 16, 2100), 0, 3, 1, 2)
    side = n.op("ReduceSum", n.op("Mul", n.op("Softmax", bins, axis=3), n.const(np.arange(16))), n.ints(3), keepdims=0)
    near, far = n.split(n.transpose(side, 0, 2, 1), 2, 2)
    grid = n.tensor(centre[None], np.float32)
    low, high = n.op("Sub", grid, near), n.op("Add", grid, far)
    box = n.concat(n.op("Div", n.op("Add", low, high), n.const(2.0)), n.op("Sub", high, low))
    box = n.op("Mul", box, n.tensor(cells[None, None], np.float32))
    n.output(n.concat(box, n.op("Sigmoid", n.concat(*scores, axis=2))), "y")


@net("shufflenetv2", "ShuffleNetV2 x0.5", at_least=(1.2, 1.2), aim=(1.5, 1.5), gmac=0.041)
def shufflenet(n):
    def branch(x, c, s):
        return n.conv(n.conv(n.conv(x, c, act=n.relu), c, 3, s, g=c, gain=1.0), c, act=n.relu)

    x, size = n.maxpool(n.conv(n.image(1, 3, 224, 224), 24, 3, 2, act=n.relu), 3, 2, 1), 28
    for c, repeat in ((48, 4), (96, 8), (192, 4)):
        for i in range(repeat):
            h = c // 2
            if i == 0:
                left = n.conv(n.conv(x, n.c[x], 3, 2, g=n.c[x], gain=1.0), h, act=n.relu)
                right = branch(x, h, 2)
            else:
                left, right = n.split(x, h, h)
                right = branch(right, h, 1)
            y = n.reshape(n.concat(left, right), 1, 2, h, size, size)
            x = n.reshape(n.transpose(y, 0, 2, 1, 3, 4), 1, c, size, size, c=c)
        size //= 2
    n.head(n.conv(x, 1024, act=n.relu))


# ---- transformers and their kin ----

@net("convnext-t", "ConvNeXt-T", at_least=(1.2, 1.15), aim=(1.4, 1.35), gmac=4.46)
def convnext(n):
    def norm2d(x):
        return n.transpose(n.layernorm(n.transpose(x, 0, 2, 3, 1), 1e-6), 0, 3, 1, 2)

    x = norm2d(n.conv(n.image(1, 3, 224, 224), 96, 4, 4, pad=0, gain=1.0))
    for i, depth in enumerate((3, 3, 9, 3)):
        c = 96 << i
        if i:
            x = n.conv(norm2d(x), c, 2, 2, pad=0, gain=1.0)
        for _ in range(depth):
            y = n.layernorm(n.transpose(n.conv(x, c, 7, g=c, gain=1.0), 0, 2, 3, 1), 1e-6)
            y = n.transpose(n.linear(n.gelu(n.linear(y, 4 * c)), c), 0, 3, 1, 2)
            x = n.add(n.op("Mul", y, n.tensor((0.3 + 0.1 * n.rng.random((c, 1, 1))).astype(np.float32))), x)
            n.c[x] = c
    x = norm2d(n.op("GlobalAveragePool", x))
    n.output(n.gemm(n.op("Flatten", x, axis=1), 1000), "y")


@net("vit-b16", "ViT-B/16", at_least=(1.05, 1.05), aim=(1.15, 1.15), gmac=17.6)
def vit(n):
    x = n.conv(n.image(1, 3, 224, 224), 768, 16, 16, pad=0, gain=1.0)
    x = n.transpose(n.reshape(x, 1, 768, 196), 0, 2, 1)
    n.c[x] = 768
    x = n.op("Concat", n.weight(1, 1, 768, scale=0.5), x, axis=1)
    n.c[x] = 768
    x = n.add(x, n.weight(1, 197, 768, scale=0.5))
    for _ in range(12):
        y = n.reshape(n.linear(n.layernorm(x, 1e-6), 2304), 1, 197, 3, 12, 64)
        y = n.transpose(y, 2, 0, 3, 1, 4)
        q, k, v = (n.op("Gather", y, n.const(i, np.int64), axis=0) for i in range(3))
        y = nets_text.attend(n, q, n.transpose(k, 0, 1, 3, 2), v, 64, "dynamo")
        x = n.add(x, n.linear(n.reshape(y, 1, 197, 768), 768))
        y = n.linear(n.gelu(n.linear(n.layernorm(x, 1e-6), 3072)), 768)
        x = n.add(x, y)
    x = n.op("Gather", n.layernorm(x, 1e-6), n.const(0, np.int64), axis=1)
    n.output(n.gemm(x, 1000), "y")


def roll(n, x, by, size):
    """Rolls both image axes of 1 x size x size x c by `by`, as exporters write it: two slices concatenated in reverse order."""
    for axis in (1, 2):
        cut = by % size
        a = n.op("Slice", x, n.ints(size - cut), n.ints(2 ** 63 - 1), n.ints(axis))
        b = n.op("Slice", x, n.ints(0), n.ints(size - cut), n.ints(axis))
        c = n.c[x]
        x = n.op("Concat", a, b, axis=axis)
        n.c[x] = c
    return x


def swin_mask(size, shift=3, window=7):
    """Attention mask of Swin: 0 for pixels of the same image region, -100 otherwise; windows x 1 x 49 x 49."""
    zone = np.zeros((size, size))
    cuts = (slice(0, size - window), slice(size - window, size - shift), slice(size - shift, size))
    for i, a in enumerate(cuts):
        for j, b in enumerate(cuts):
            zone[a, b] = 3 * i + j
    m = size // window
    zone = zone.reshape(m, window, m, window).transpose(0, 2, 1, 3).reshape(m * m, 49)
    return np.where(zone[:, None, :] == zone[:, :, None], 0.0, -100.0)[:, None].astype(np.float32)


def swin_attention(n, x, c, size, count, shift):
    m = size // 7
    x = roll(n, x, -shift, size) if shift else x
    x = n.transpose(n.reshape(x, 1, m, 7, m, 7, c), 0, 1, 3, 2, 4, 5)
    x = n.linear(n.reshape(x, m * m, 49, c), 3 * c)
    y = n.transpose(n.reshape(x, m * m, 49, 3, count, 32), 2, 0, 3, 1, 4)
    q, k, v = (n.op("Gather", y, n.const(i, np.int64), axis=0) for i in range(3))
    s = n.op("MatMul", n.op("Mul", q, n.const(32 ** -0.5)), n.transpose(k, 0, 1, 3, 2))
    s = n.op("Add", s, n.weight(1, count, 49, 49, scale=0.5))
    s = n.op("Add", s, n.tensor(swin_mask(size))) if shift else s
    y = n.transpose(n.op("MatMul", n.op("Softmax", s, axis=-1), v), 0, 2, 1, 3)
    y = n.reshape(n.linear(n.reshape(y, m * m, 49, c), c), 1, m, m, 7, 7, c)
    y = n.reshape(n.transpose(y, 0, 1, 3, 2, 4, 5), 1, size, size, c)
    return roll(n, y, shift, size) if shift else y


@net("swin-t", "Swin-T", at_least=(1.2, 1.08), aim=(1.4, 1.25), gmac=4.49)
def swin(n):
    x = n.transpose(n.conv(n.image(1, 3, 224, 224), 96, 4, 4, pad=0, gain=1.0), 0, 2, 3, 1)
    x = n.layernorm(x)
    for i, depth in enumerate((2, 2, 6, 2)):
        c, size = 96 << i, 56 >> i
        if i:
            parts = []
            for a, b in ((0, 0), (1, 0), (0, 1), (1, 1)):
                y = n.op("Slice", x, n.ints(a), n.ints(2 ** 63 - 1), n.ints(1), n.ints(2))
                parts.append(n.op("Slice", y, n.ints(b), n.ints(2 ** 63 - 1), n.ints(2), n.ints(2)))
            x = n.linear(n.layernorm(n.concat(*parts, axis=3)), c, bias=False)
        for j in range(depth):
            x = n.add(x, swin_attention(n, n.layernorm(x), c, size, 3 << i, 3 if j % 2 and size > 7 else 0))
            x = n.add(x, n.linear(n.gelu(n.linear(n.layernorm(x), 4 * c)), c))
    x = n.transpose(n.layernorm(x), 0, 3, 1, 2)
    n.head(x)


ORDER = ("resnet18 resnet50 densenet121 squeezenet unet16 yolo deeplabv3 mobilenetv2 sense mobilenetv3-large mobilenetv3-small efficientnet-b0 "
         "shufflenetv2 convnext-t swin-t vit-b16 bert-base minilm bert-tiny gpt2 gpt-tiny lstm gru resnet50-int8 mobilenetv2-int8").split()
ORDER += [name for name in NETS if name not in ORDER]


def make(name, folder=FOLDER):
    """Path of NAME.onnx, written if it is missing or older than the files that describe it."""
    path = os.path.join(folder, name + ".onnx")
    here = os.path.dirname(os.path.abspath(__file__))
    newest = max(os.path.getmtime(os.path.join(here, f)) for f in os.listdir(here) if f.startswith("net") and f.endswith(".py"))
    if os.path.exists(path) and os.path.getmtime(path) >= newest:
        return path
    os.makedirs(folder, exist_ok=True)
    if "file" in NETS[name]:
        NETS[name]["file"](path, make)
    else:
        n = Net(name, **NETS[name].get("net", {}))
        NETS[name]["make"](n)
        n.write(folder)
    return path


def main():
    if len(sys.argv) < 2:
        print("\n".join(ORDER))
    for name in sys.argv[1:]:
        make(name)


if __name__ == "__main__":
    main()
