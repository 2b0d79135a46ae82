#!/usr/bin/env python3
"""Measures single layers in percent of the limit of the machine: multiply-adds vs peak, bytes vs read bandwidth, both measured in the same run.

    bench/micro.py [--only PATTERN,..] [--engines ort,ingot-gcc] [--threads 1] [--quick] [--list]

Each layer is a one-node network that takes turns as in bench/peers.py. Weights are warm, and a layer alone pays for bringing its input into
the layout it wants, so these figures say how good a kernel is, not how fast a network will be. Results go to build/bench/results.json.
int8 layers are compiled for AVX2, without int8 dot products, and compared with ONNX Runtime twice: with its defaults, which saturate
int8 sums on CPUs without VNNI, and with exact sums. On a CPU with VNNI, ONNX Runtime uses it.
"""
import argparse
import fnmatch
import json
import os
import subprocess
import sys

import peers

FOLDER = os.path.join(peers.BUILD, "bench", "micro")
LAYERS = {}


def layer(name, f, family):
    LAYERS[name] = (f, family)


def conv(cin, cout, size, k, s=1, g=1, act=True):
    return lambda n: n.output(n.conv(n.image(1, cin, size, size), cout, k, s, g, act=n.relu if act else None), "y")


def matrix(m, width, k):
    def f(n):
        import numpy as np
        n.output(n.linear(n.input("x", n.rng.standard_normal((m, k), np.float32)), width), "y")
    return f


def unary(f, *shape):
    def g(n):
        import numpy as np
        n.output(f(n, n.input("x", n.rng.standard_normal(shape, np.float32))), "y")
    return g


def attention(n, count=12, length=128, width=64):
    import nets_text
    import numpy as np
    q, k, v = (n.input(i, n.rng.standard_normal((1, count, length, width), np.float32)) for i in "qkv")
    n.output(nets_text.attend(n, q, n.transpose(k, 0, 1, 3, 2), v, width, "dynamo"), "y")


for c, p in ((64, 56), (128, 28), (256, 14), (512, 7)):
    layer(f"conv3x3-{c}@{p}", conv(c, c, p, 3), "dense convolution")
layer("conv3x3s2-128@56", conv(128, 128, 56, 3, 2), "dense convolution")
layer("conv7x7s2-3to64@224", conv(3, 64, 224, 7, 2), "dense convolution")
for a, b, p in ((256, 64, 56), (64, 256, 56), (512, 128, 28), (256, 1024, 14), (1024, 256, 14), (2048, 512, 7), (512, 2048, 7)):
    layer(f"conv1x1-{a}to{b}@{p}", conv(a, b, p, 1), "dense convolution")
layer("conv3x3g32-256@14", conv(256, 256, 14, 3, 1, 32), "grouped convolution")
for c, g in ((96, 16), (240, 8), (288, 8)):
    layer(f"conv3x3g{g}-{c}@28", conv(c, c, 28, 3, 1, g), "grouped convolution")
for c, p, k, s in ((32, 112, 3, 1), (144, 56, 3, 1), (384, 14, 3, 1), (960, 7, 3, 1), (144, 56, 3, 2), (120, 28, 5, 1), (672, 14, 5, 1), (96, 56, 7, 1)):
    layer(f"depthwise{k}x{k}{'s2' if s > 1 else ''}-{c}@{p}", conv(c, c, p, k, s, c), "depthwise convolution")
for m, w, k in ((128, 768, 768), (128, 3072, 768), (128, 768, 3072), (384, 768, 768), (512, 512, 512), (1024, 1024, 1024), (196, 1024, 256),
                (3136, 256, 64), (49, 2048, 512), (12, 768, 768), (4, 1024, 1024)):
    layer(f"gemm-{m}x{w}x{k}", matrix(m, w, k), "matrix product")
for w, k in ((64, 64), (256, 256), (512, 512), (1024, 512), (2048, 1024), (4096, 4096)):
    layer(f"gemv-{w}x{k}", matrix(1, w, k), "matrix times vector")
layer("attention-12x128x64", attention, "attention")
for rows, columns in ((3072, 64), (1536, 128), (900, 300), (256, 1024), (64, 4096)):
    layer(f"softmax-{rows}x{columns}", unary(lambda n, x: n.op("Softmax", x, axis=-1), rows, columns), "rows, elements, movement")
for name, f, shape in (("layernorm-128x768", lambda n, x: n.layernorm(x), (1, 128, 768)),
                       ("gelu-128x3072", lambda n, x: n.gelu(x), (128, 3072)),
                       ("silu-144@56", lambda n, x: n.silu(x), (1, 144, 56, 56)),
                       ("tanh-64k", lambda n, x: n.op("Tanh", x), (65536,)),
                       ("exp-64k", lambda n, x: n.op("Exp", x), (65536,)),
                       ("maxpool3x3s2-64@112", lambda n, x: n.maxpool(x, 3, 2, 1), (1, 64, 112, 112)),
                       ("maxpool5x5-128@20", lambda n, x: n.maxpool(x, 5, 1, 2), (1, 128, 20, 20)),
                       ("argmax-21@128", lambda n, x: n.op("Cast", n.op("ArgMax", x, axis=1), to=1), (1, 21, 128, 128)),
                       ("argmax-8x32000", lambda n, x: n.op("Cast", n.op("ArgMax", x, axis=-1), to=1), (8, 32000)),
                       ("topk-1000of25000", lambda n, x: n.op("TopK", x, n.ints(1000), outs=2)[0], (1, 25000)),
                       ("cumsum-512x64", lambda n, x: n.op("CumSum", x, n.ints(1)), (4, 512, 64)),
                       ("globalaverage-2048@7", lambda n, x: n.op("GlobalAveragePool", x), (1, 2048, 7, 7)),
                       ("transpose-384x384", lambda n, x: n.transpose(x, 1, 0), (384, 384)),
                       ("transpose-heads", lambda n, x: n.transpose(x, 0, 2, 1, 3), (1, 128, 12, 64)),
                       ("upsample2-128@40", lambda n, x: n.upsample(x), (1, 128, 40, 40))):
    layer(name, unary(f, *shape), "rows, elements, movement")


def forest(*args):
    def f(n):
        import forests
        forests.forest(*args)(n)
    return f


for count, leaves, depth in ((300, 63, 64), (100, 31, 64), (100, 64, 6), (200, 1024, 10), (10, 16, 4)):
    for rows in (1, 100):
        layer(f"forest-{count}x{leaves}{'' if depth > 60 else f'd{depth}'}@{rows}", forest(count, leaves, rows, depth), "trees")


def some_bytes(n, kind, *shape):
    import numpy as np
    return np.clip(n.rng.normal(0 if kind == np.int8 else 128, 30, shape), np.iinfo(kind).min, np.iinfo(kind).max).astype(kind)


def int8_conv(cin, cout, size, k, g=1, weights="int8", integer=False):
    def f(n):
        import numpy as np
        w = np.dtype(weights).type
        x, zero = n.input("x", some_bytes(n, np.uint8, 1, cin, size, size)), n.const(120, np.uint8)
        wzero, k2 = 0 if w == np.int8 else 128, dict(kernel_shape=[k, k], pads=[k // 2] * 4, group=g)
        weight = n.tensor(some_bytes(n, w, cout, cin // g, k, k))
        if integer:
            n.output(n.op("ConvInteger", x, weight, n.input("z", np.array(120, np.uint8)), n.const(wzero, w), **k2), "y")
        else:
            n.output(n.op("QLinearConv", x, n.const(.02), zero, weight, n.tensor(np.full(cout, .01, np.float32)), n.tensor(np.full(cout, wzero, w)),
                          n.const(.03 * (cin // g * k * k) ** .5), n.const(100, np.uint8), **k2), "y")
    return f


def int8_matrix(m, width, k, integer=False):
    def f(n):
        import numpy as np
        x, w = n.input("x", some_bytes(n, np.uint8, m, k)), n.tensor(some_bytes(n, np.int8, k, width))
        if integer:
            n.output(n.op("MatMulInteger", x, w, n.input("z", np.array(120, np.uint8))), "y")
        else:
            n.output(n.op("QLinearMatMul", x, n.const(.02), n.const(120, np.uint8), w, n.const(.01), n.const(0, np.int8), n.const(.03 * k ** .5),
                          n.const(100, np.uint8)), "y")
    return f


def int8_add(n, c=256, size=56):
    import numpy as np
    a, b = (n.op("DequantizeLinear", n.input(i, some_bytes(n, np.uint8, 1, c, size, size)), n.const(s), n.const(z, np.uint8))
            for i, s, z in (("a", .02, 120), ("b", .03, 100)))
    n.output(n.op("QuantizeLinear", n.add(a, b), n.const(.04), n.const(110, np.uint8)), "y")


def int8_qlinear_add(kind, c=256, size=56):
    def f(n):
        import numpy as np
        k = np.dtype(kind).type
        middle = 0 if k == np.int8 else 128
        a, b = ([n.input(i, some_bytes(n, k, 1, c, size, size)), n.const(s), n.const(middle + z, k)] for i, s, z in (("a", .02, -8), ("b", .03, 12)))
        n.output(n.op("QLinearAdd", *a, *b, n.const(.04), n.const(middle - 18, k), domain="com.microsoft"), "y")
    return f


INT8 = "int8, code for AVX2"
for c, p in ((64, 56), (128, 28), (512, 7)):
    layer(f"int8-conv3x3-{c}@{p}", int8_conv(c, c, p, 3), INT8)
for a, b, p in ((256, 64, 56), (64, 256, 56), (1024, 256, 14)):
    layer(f"int8-conv1x1-{a}to{b}@{p}", int8_conv(a, b, p, 1), INT8)
layer("int8-conv1x1-u8u8-256@28", int8_conv(256, 256, 28, 1, weights="uint8"), INT8)
layer("int8-depthwise3x3-144@56", int8_conv(144, 144, 56, 3, 144), INT8)
layer("int8-convinteger3x3-64@56", int8_conv(64, 64, 56, 3, integer=True), INT8)
layer("int8-matmul-128x768x768", int8_matrix(128, 768, 768), INT8)
layer("int8-matmulinteger-128x768x768", int8_matrix(128, 768, 768, True), INT8)
layer("int8-add-256@56", int8_add, INT8)
for kind, name in (("uint8", "u8"), ("int8", "s8")):
    layer(f"int8-qlinearadd-{name}-256@56", int8_qlinear_add(kind), INT8)


def peak(threads):
    """(GFLOP/s, GB/s), measured now."""
    prog, source = os.path.join(peers.BUILD, "bench", "peak"), os.path.join(peers.HERE, "peak.c")
    if not os.path.exists(prog) or os.path.getmtime(prog) < os.path.getmtime(source):
        os.makedirs(os.path.dirname(prog), exist_ok=True)
        subprocess.run([os.environ.get("CC", "cc"), "-O3", "-march=native", "-ffp-contract=fast", source, "-o", prog, "-lpthread"], check=True)
    got = subprocess.run([prog, str(threads), "100"], stdout=subprocess.PIPE, text=True, check=True)
    return tuple(float(x) for x in got.stdout.split())


def write(name):
    from netlib import Net
    path = os.path.join(FOLDER, name)
    source = max(os.path.getmtime(os.path.join(peers.HERE, f)) for f in ("micro.py", "netlib.py", "forests.py"))
    if not os.path.exists(path + ".onnx") or os.path.getmtime(path + ".onnx") < source:
        n = Net(name)
        LAYERS[name][0](n)
        n.write(FOLDER)
    with open(path + ".json") as f:
        return path + ".onnx", json.load(f)["macs"]


def moved(path):
    """Bytes that must be touched once: inputs, outputs, weights."""
    import numpy as np
    import onnx
    from netlib import extents, itemsize
    g = onnx.load(path).graph
    total = sum(int(np.prod(i.dims)) * itemsize(i.data_type) for i in g.initializer)
    return total + sum(4 * int(np.prod(extents(v))) for v in [*g.input, *g.output])


def line(name, row, macs, size, top, engines):
    parts = []
    for e in engines:
        r = row.get(e, {})
        if "min_ms" not in r:
            parts.append(f"{e} refused ({r.get('refused', '?')[:60]})")
            continue
        r["gflops"], r["gbps"] = 2e-6 * macs / r["min_ms"], 1e-6 * size / r["min_ms"]
        rate = f" {100 * r['gflops'] / top[0]:.0f} % of peak" if macs else f" {r['gbps']:.1f} GB/s"
        parts.append(f"{e} {1e3 * r['min_ms']:.1f} us{'' if LAYERS[name][1] == 'trees' else rate}")
    print(f"{name:24} " + "; ".join(parts), flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--only")
    p.add_argument("--engines", default="ort,ingot-gcc,ingot-clang")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--quick", action="store_true")
    p.add_argument("--flags", default="")
    p.add_argument("--list", action="store_true")
    a = p.parse_args()
    if a.list:
        print("\n".join(LAYERS))
        return
    peers.enter_venv()
    names = [n for n in LAYERS if not a.only or any(fnmatch.fnmatch(n, q) for q in a.only.split(","))]
    engines = a.engines.split(",")
    info = peers.machine()
    top = peak(a.threads)
    print(f"{info['cpu']}, load {info['load']:.1f}; peak {top[0]:.1f} GFLOP/s, read {top[1]:.1f} GB/s, {a.threads} thread(s); minima")
    for name in names:
        path, macs = write(name)
        int8 = LAYERS[name][1] == INT8
        beside = [*engines[:1], "ort-exact", *engines[1:]] if int8 and "ort" in engines else engines
        row = peers.measure(path, a.threads, beside, *((3, 40) if a.quick else (6, 100)),
                            [*a.flags.split(), *(("--march", "avx2") if int8 else ())])
        now = peak(a.threads)
        top = tuple(max(x) for x in zip(top, now))
        line(name, row, macs, moved(path), top, beside)
        peers.keep(peers.RESULTS, {f"micro:{name}/{a.threads}": {**row, "macs": macs, "family": LAYERS[name][1], "peak": now}, "machine": info,
                    f"peak/{a.threads}": {"gflops": top[0], "gbps": top[1]}})


if __name__ == "__main__":
    main()
