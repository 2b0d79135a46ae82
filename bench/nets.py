"""Networks for images, written as exporters write them: bench/nets.py NAME... writes them into build/bench/nets; no name lists all.

The architectures are the published ones, layer by layer (depth, width, strides, where activations and squeeze-excite blocks sit),
at 224x224 unless said. Batch normalisation is folded into the convolution before it, as both exporters of torch do, except
where nothing precedes it (DenseNet) and in U-Net, which keeps it as a training graph would.
"""
import os
import sys

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

def inverted(n, x, expand, c, s, k, act, squeeze=None):
    """Expand, depthwise, squeeze-excite, project; expand is the number of hidden channels."""
    cin = n.c[x]
    y = n.conv(x, expand, act=act) if expand != cin else x
    y = n.conv(y, expand, k, s, g=expand, act=act)
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


def make(name, folder=FOLDER):
    """Path of NAME.onnx, written if it is missing or older than the files that describe it."""
    path = os.path.join(folder, name + ".onnx")
    here = os.path.dirname(os.path.abspath(__file__))
    newest = max(os.path.getmtime(os.path.join(here, f)) for f in os.listdir(here) if f.startswith("net") and f.endswith(".py"))
    if not os.path.exists(path) or os.path.getmtime(path) < newest:
        n = Net(name, **NETS[name].get("net", {}))
        NETS[name]["make"](n)
        n.write(folder)
    return path


def main():
    if len(sys.argv) < 2:
        print("\n".join(NETS))
    for name in sys.argv[1:]:
        make(name)


if __name__ == "__main__":
    main()
