"""Compares `ingot quantize` with the quantizer of ONNX Runtime, and quantized models with float ones.

    bench/quantize.py [NAME...]                                             accuracy vs the quantizer of ONNX Runtime, on networks of nets.py
    bench/quantize.py --speed [--march scalar,sse2,...] [--rows N] [NAME...]    speed of the C of every method vs the float model, on networks of test/make/mkquantize.py
    bench/quantize.py --groups 2,4,... [--march ...]                        speed of three static 3x3 convolutions on 28x28 with that many channels per group

Both quantizers get the same calibration examples (images with the spectrum of photographs, random words) and use static QDQ with a scale
per channel. SQNR is measured on the outputs of other examples, in ONNX Runtime with session.x64quantprecision. Column C is the largest
difference between the compiled model and ONNX Runtime on these examples, in 255ths of the output range. The next column is the same
difference between ONNX Runtime with and without its optimizations. Times are CPU times, the minimum of five turns; for speeds, of twenty
short turns.

A speed is the time of the float model divided by that of the quantized one, on the same target, both made by `ingot build`.
"""
import argparse
import json
import os
import subprocess
import sys

import numpy as np
import onnx
from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "test", "make"))
import quantized  # noqa: E402
from mkquantize import Reader, images  # noqa: E402
import timer  # noqa: E402

INGOT = os.path.join(ROOT, "build", "ingot")
OUT = os.path.join(ROOT, "build", "bench", "quantize")
NETS = os.path.join(ROOT, "build", "bench", "nets")
METHODS = ("static", "dynamic", "weights8", "weights4", "f16", "bf16")
SMALL = ("dense", "bert", "resnet18", "mobilenet", "resnext", "digits")


def data(model, seed, n):
    rng, out = np.random.default_rng(seed), {}
    for i in onnx.load(model).graph.input:
        shape = [d.dim_value for d in i.type.tensor_type.shape.dim]
        if len(shape) == 4:
            out[i.name] = images(rng, n, shape[-1])
        else:
            out[i.name] = np.ones((n, *shape[1:]), np.int64) if "mask" in i.name else rng.integers(0, 1000, (n, *shape[1:]))
    return out


def turn(program, seconds=0.5):
    """CPU time of a run in ms."""
    used, got = timer.child([program, "--bench", str(seconds)])
    return used * 1000 / json.loads(got.stdout.splitlines()[-1])["n"]


def times(models, *how, seconds=0.5, rounds=5):
    programs = []
    for m in models:
        programs.append(os.path.join(OUT, os.path.basename(m)[:-5] + ".program"))
        subprocess.run([INGOT, "build", m, *how, "-o", programs[-1], "--quiet"], check=True)
    turns = [[turn(p, seconds) for p in programs] for _ in range(rounds)]
    return [min(column) for column in zip(*turns)]


def in_c(path, held, i):
    np.savez(path + "_one.npz", **{k: v[i:i + 1] for k, v in held.items()})
    subprocess.run([path + "_8.program", "--inputs", path + "_one.npz", "--output", path + "_c.npz"], check=True, stdout=subprocess.DEVNULL)
    return next(iter(np.load(path + "_c.npz").values()))


def row(name):
    model, path = os.path.join(NETS, name + ".onnx"), os.path.join(OUT, name)
    if not os.path.exists(model):
        subprocess.run([sys.executable, os.path.join(ROOT, "bench", "nets.py"), name], check=True)
    some, held = data(model, 1, 12), data(model, 2, 6)
    np.savez(path + ".npz", **some)
    np.savez(path + "_held.npz", **held)
    quant_pre_process(model, path + "_pre.onnx", skip_symbolic_shape=True)
    quantize_static(path + "_pre.onnx", path + "_ort.onnx", Reader(some), quant_format=QuantFormat.QDQ, per_channel=True, activation_type=QuantType.QUInt8,
                    weight_type=QuantType.QInt8)
    subprocess.run([INGOT, "quantize", model, "--data", path + ".npz", "--holdout", path + "_held.npz", "-o", path + "_8.onnx", "--json", "--quiet"], check=True,
                   stdout=subprocess.DEVNULL)
    want, ours, theirs = (quantized.outputs(m, held) for m in (model, path + "_8.onnx", path + "_ort.onnx"))
    db = [10 * np.log10((want.astype(float) ** 2).sum() / ((x - want).astype(float) ** 2).sum()) for x in (ours, theirs)]
    ms = times([model, path + "_8.onnx"])
    worst = max(np.abs(in_c(path, held, i) - ours[i:i + 1]).max() for i in range(len(ours)))
    own = np.abs(quantized.outputs(path + "_8.onnx", held, plain=True) - ours).max()
    steps, own = (x * 255 / (ours.max() - ours.min()) for x in (worst, own))
    size = os.path.getsize(path + "_8.onnx") / os.path.getsize(model)
    print(f"| {name} | {db[0]:.1f} | {db[1]:.1f} | {steps:.2f} | {own:.2f} | {size:.3f} | {ms[0]:.2f} | {ms[1]:.2f} |", flush=True)


def beside_ort(names):
    print("| network | SQNR dB | ONNX Runtime's quantizer | C, steps | its own, steps | size | float C, ms | C, ms |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in names or ("mobilenetv2", "resnet18", "bert-tiny"):
        row(name)


def small_networks():
    """Networks of test/make/mkquantize.py, if its script has not changed since."""
    folder, script = os.path.join(OUT, "small"), os.path.join(ROOT, "test", "make", "mkquantize.py")
    if not os.path.exists(folder) or os.path.getmtime(folder) < os.path.getmtime(script):
        subprocess.run([sys.executable, script, folder], check=True, capture_output=True)
        os.utime(folder)
    return folder


def speeds(names, marches, rows):
    folder = small_networks()
    print("| network | target | float, ms | " + " | ".join(METHODS) + " |\n|" + " --- |" * (3 + len(METHODS)))
    for name in names or SMALL:
        model = os.path.join(folder, name + ".onnx")
        forms = [model]
        for method in METHODS:
            forms.append(os.path.join(OUT, f"{name}_{method}.onnx"))
            subprocess.run([INGOT, "quantize", model, "--data", model[:-5] + ".npz", "--method", method, "-o", forms[-1], "--quiet"], check=True, stdout=subprocess.DEVNULL)
        for march in marches:
            ms = times(forms, "--march", march, "-d", f"batch={rows}", seconds=0.04, rounds=20)
            print(f"| {name} | {march} | {ms[0]:.4f} | " + " | ".join(f"{ms[0] / x:.2f}" for x in ms[1:]) + " |", flush=True)


def grouped(path, each, side=28):
    """Three convolutions in groups of `each` channels, with 64 channels or the next multiple, and examples for them."""
    wide = max(2, -(-64 // each)) * each
    rng, nodes, weights = np.random.default_rng(each), [], []
    for i in range(3):
        w = (rng.standard_normal((wide, each, 3, 3)) / np.sqrt(9 * each)).astype(np.float32)
        weights.append(onnx.numpy_helper.from_array(w, f"w{i}"))
        nodes.append(onnx.helper.make_node("Conv", [f"x{i}", f"w{i}"], [f"c{i}"], group=wide // each, pads=[1] * 4))
        nodes.append(onnx.helper.make_node("Relu", [f"c{i}"], [f"x{i + 1}"]))
    kind = [onnx.helper.make_tensor_value_info(x, onnx.TensorProto.FLOAT, ["batch", wide, side, side]) for x in ("x0", "x3")]
    graph = onnx.helper.make_graph(nodes, "groups", kind[:1], kind[1:], weights)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), path + ".onnx")
    np.savez(path + ".npz", x0=rng.standard_normal((8, wide, side, side)).astype(np.float32))


def group_speeds(sizes, marches):
    print("| channels of a group | " + " | ".join(f"{m}, float ms | static" for m in marches) + " |\n|" + " --- |" * (1 + 2 * len(marches)))
    for each in sizes:
        path, cells = os.path.join(OUT, f"groups{each}"), []
        grouped(path, each)
        forms = [path + ".onnx", path + "_8.onnx"]
        subprocess.run([INGOT, "quantize", forms[0], "--data", path + ".npz", "-o", forms[1], "--quiet"], check=True, stdout=subprocess.DEVNULL)
        for march in marches:
            ms = times(forms, "--march", march, "-d", "batch=1", seconds=0.04, rounds=20)
            cells.append(f"{ms[0]:.3f} | {ms[0] / ms[1]:.2f}")
        print(f"| {each} | " + " | ".join(cells) + " |", flush=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("names", nargs="*")
    ap.add_argument("--speed", action="store_true")
    ap.add_argument("--march", default="scalar,sse2,avx2,avx512")
    ap.add_argument("--rows", type=int, default=1)
    ap.add_argument("--groups")
    o = ap.parse_args()
    os.makedirs(OUT, exist_ok=True)
    if o.groups:
        group_speeds([int(n) for n in o.groups.split(",")], o.march.split(","))
    elif o.speed:
        speeds(o.names, o.march.split(","), o.rows)
    else:
        beside_ort(o.names)


if __name__ == "__main__":
    main()
