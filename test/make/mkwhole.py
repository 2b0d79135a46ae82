"""Writes whole models for test/suite/whole.py: mkwhole.py MODELS OUT writes OUT/NAME.onnx and OUT/NAME/{inputs,expected}.npz.

The scripts of bench/ write the models, from fixed seeds; ONNX Runtime computes the expected outputs.
Runs with the Python of build/venv.

sense: one input; bert: `LENGTH/NAME` for several lengths; yolo: `SEED/NAME` for several images, the number of boxes depends on
the image; silero: all steps of two streams, `STREAM/NAME`, stacked along axis 0, state passed on by hand.
"""
import os
import shutil
import subprocess
import sys

import numpy as np

import oracle

BENCH = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "bench")
LENGTHS, STEPS, SIDE = (1, 7, 128, 512), 100, 96


def session(path):
    s = oracle.session(path, threads=1)
    names = [o.name for o in s.get_outputs()]
    return lambda given: dict(zip(names, s.run(names, given)))


def write(out, name, inputs, expected):
    os.makedirs(os.path.join(out, name))
    np.savez(os.path.join(out, name, "inputs.npz"), **inputs)
    np.savez(os.path.join(out, name, "expected.npz"), **expected)


def several(out, name, script, args, cases):
    """cases: {key: {input: array}}"""
    path = os.path.join(out, name + ".onnx")
    subprocess.run([sys.executable, os.path.join(BENCH, script), path, *args], check=True)
    run = session(path)
    inputs = {f"{k}/{n}": a for k, given in cases.items() for n, a in given.items()}
    expected = {f"{k}/{n}": a for k, given in cases.items() for n, a in run(given).items()}
    write(out, name, inputs, expected)


def bert(rng, length):
    mask = np.ones((1, length), np.int64)
    mask[:, length - length // 4:] = 0
    return {"input_ids": rng.integers(0, 30522, (1, length)), "attention_mask": mask}


def voice(n, rate=16000):
    """Harmonics of a varying pitch, in syllables with pauses."""
    t = np.arange(n) / rate
    phase = 2 * np.pi * np.cumsum(140 + 30 * np.sin(2 * np.pi * 0.8 * t)) / rate
    x = sum(np.sin(k * phase) / k for k in range(1, 20)) * np.clip(np.sin(2 * np.pi * 2.7 * t) + 0.2, 0, 1)
    return (0.4 * x / np.abs(x).max()).astype(np.float32)


def silero(models, out):
    path = os.path.join(models, "silero_vad_v6.onnx")
    if not os.path.exists(path):
        return
    run = session(path)
    streams = {"voice": voice(STEPS * 512),
               "noise": (0.3 * np.random.default_rng(3).standard_normal(STEPS * 512)).astype(np.float32)}
    inputs, expected = {}, {}
    for name, x in streams.items():
        x = np.concatenate([np.zeros(64, np.float32), x])
        chunks = np.stack([x[k * 512:k * 512 + 576] for k in range(STEPS)]).astype(np.float32)
        h = c = np.zeros((1, 1, 128), np.float32)
        found = []
        for k in range(STEPS):
            got = run({"input": chunks[k:k + 1], "h": h, "c": c})
            h, c = got["hn"], got["cn"]
            found.append(got["speech_probs"])
        inputs[name + "/input"], expected[name + "/speech_probs"] = chunks, np.concatenate(found)
    write(out, "silero", inputs, expected)


def main():
    models, out = sys.argv[1:]
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    rng = np.random.default_rng(7)
    several(out, "sense", "mksense.py", [], {"0": {"x": rng.random((1, 128, 192, 1), np.float32)}})
    several(out, "bert", "mkbert.py", ["2", "128"], {n: bert(rng, n) for n in LENGTHS})
    several(out, "yolo", "mkyolo.py", [str(SIDE), "8", "20"],
            {k: {"image": rng.uniform(-1, 1, (1, 3, SIDE, SIDE)).astype(np.float32)} for k in range(4)})
    silero(models, out)


main()
