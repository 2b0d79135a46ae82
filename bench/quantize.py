"""`ingot quantize` beside ONNX Runtime's quantiser, on networks of nets.py: bench/quantize.py [NAME...] prints a table.

Both get the same examples (images with the spectrum of photographs, random words), static, QDQ, a scale for each channel. SQNR is that of the outputs on other examples, in ONNX
Runtime with session.x64quantprecision; C beside it is the compiled model against ONNX Runtime on the same file, the largest difference in all of these examples, in 255ths of the range of the outputs, and behind it the same between ONNX Runtime with and without its optimisations. Times are of the processor, not of the clock, the least of
five turns, taken in turn.
"""
import json
import os
import resource
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

INGOT = os.path.join(ROOT, "build", "ingot")
OUT = os.path.join(ROOT, "build", "bench", "quantize")
NETS = os.path.join(ROOT, "build", "bench", "nets")


def data(model, seed, n):
    rng, out = np.random.default_rng(seed), {}
    for i in onnx.load(model).graph.input:
        shape = [d.dim_value for d in i.type.tensor_type.shape.dim]
        if len(shape) == 4:
            out[i.name] = images(rng, n, shape[-1])
        else:
            out[i.name] = np.ones((n, *shape[1:]), np.int64) if "mask" in i.name else rng.integers(0, 1000, (n, *shape[1:]))
    return out


def turn(program):
    """Processor time of a run in ms."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = json.loads(subprocess.run([program, "--bench", "0.5"], capture_output=True, text=True, check=True).stdout.splitlines()[-1])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000 / said["n"]


def times(models):
    programs = []
    for m in models:
        programs.append(os.path.join(OUT, os.path.basename(m)[:-5] + ".program"))
        subprocess.run([INGOT, "build", m, "-o", programs[-1], "--quiet"], check=True)
    turns = [[turn(p) for p in programs] for _ in range(5)]
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


def main(names):
    os.makedirs(OUT, exist_ok=True)
    print("| network | SQNR dB | ONNX Runtime's quantiser | C, steps | its own, steps | size | float C, ms | C, ms |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in names or ("mobilenetv2", "resnet18", "bert-tiny"):
        row(name)


if __name__ == "__main__":
    main(sys.argv[1:])
