"""Writes inputs and expected outputs of the real models: mkmodels.py MODELS OUT writes OUT/NAME-KIND/{inputs,expected}.npz and
OUT/cases.json.

Runs with the Python of build/venv.
ONNX Runtime computes the expected outputs.
Every model gets random and realistic input.
A streaming model has a list of steps: inputs.npz has `STEP/NAME`, expected.npz has `STEP/NAME` for the steps that are compared,
and `state` maps outputs to the inputs of the next step.
"""
import glob
import json
import os
import sys
import wave

import numpy as np
from PIL import Image, ImageDraw, ImageFont

import oracle

STEPS = 100


def speech(rate, seconds):
    """Speech at the given rate, in -1..1: recorded words if Debian's alsa-utils is installed, else a synthetic voice: a glottal
    pulse train with varying pitch through three formants, in syllables with pauses and noise."""
    words = sorted(glob.glob("/usr/share/sounds/alsa/*_*.wav"))
    n = int(rate * seconds)
    if words and 48000 % rate == 0:
        parts = []
        for path in words:
            with wave.open(path) as w:
                x = np.frombuffer(w.readframes(w.getnframes()), np.int16).astype(np.float32) / 32768
            k = 48000 // rate
            parts.append(x[:len(x) // k * k].reshape(-1, k).mean(1))
        x = np.concatenate(parts)
        return np.tile(x, n // len(x) + 1)[:n].astype(np.float32)
    rng = np.random.default_rng(11)
    t = np.arange(n) / rate
    pitch = 120 + 25 * np.sin(2 * np.pi * 0.7 * t) + 8 * np.sin(2 * np.pi * 4.3 * t)
    phase = np.cumsum(pitch) / rate
    source = 2 * (phase % 1) - 1 + 0.05 * rng.standard_normal(n)
    voice = np.zeros(n)
    for k, (low, high) in enumerate(((300, 800), (900, 2200), (2300, 3000))):
        centre = low + (high - low) * (0.5 + 0.5 * np.sin(2 * np.pi * (1.3 + 0.9 * k) * t + k))
        radius = 0.97
        cos = 2 * radius * np.cos(2 * np.pi * centre / rate)
        a = b = 0.0
        for i in range(n):
            a, b = (1 - radius) * source[i] + cos[i] * a - radius * radius * b, a
            voice[i] += a / (k + 1)
    syllables = np.clip(np.sin(2 * np.pi * 3.1 * t) + 0.3, 0, 1) * (np.sin(2 * np.pi * 0.35 * t) > -0.3)
    x = voice * syllables + 0.002 * rng.standard_normal(n)
    return (0.5 * x / np.abs(x).max()).astype(np.float32)


def text_image(text, width, height, flip=False):
    """A line of text in the form that PP-OCR expects: f32[1,3,H,W] in -1..1."""
    image = Image.new("RGB", (width, height), "white")
    ImageDraw.Draw(image).text((8, 4), text, fill="black", font=ImageFont.load_default(36))
    if flip:
        image = image.rotate(180)
    return (np.asarray(image, np.float32) / 127.5 - 1).transpose(2, 0, 1)[None].copy()


def page(size):
    image = Image.new("RGB", (size, size), "white")
    draw = ImageDraw.Draw(image)
    for k, line in enumerate(("ingot", "2026", "reads text")):
        draw.text((10, 10 + k * size // 3), line, fill=(20 * k, 30, 90), font=ImageFont.load_default(36))
    return (np.asarray(image, np.float32) / 127.5 - 1).transpose(2, 0, 1)[None].copy()


class Maker:
    def __init__(self, models, out):
        self.models, self.out, self.rows = models, out, []

    def session(self, model):
        path = os.path.join(self.models, model + ".onnx")
        if not os.path.exists(path):
            return None
        return oracle.session(path, optimise=False, threads=1)

    def case(self, model, kind, steps, state=None, argmax=None, cost=5.0):
        """steps: list of {input: array}; state: {output: input}; argmax: axis along which the index of the maximum must be
        equal."""
        s = self.session(model)
        if s is None:
            return
        names = [o.name for o in s.get_outputs()]
        inputs, expected, carried = {}, {}, {}
        for k, step in enumerate(steps):
            result = dict(zip(names, s.run(names, {**step, **carried})))
            carried = {i: result[o] for o, i in (state or {}).items()}
            inputs.update({f"{k}/{n}": a for n, a in step.items()})
            if k in (0, len(steps) // 2, len(steps) - 1):
                expected.update({f"{k}/{n}": a for n, a in result.items()})
        folder = os.path.join(self.out, f"{model}-{kind}")
        os.makedirs(folder, exist_ok=True)
        np.savez(os.path.join(folder, "inputs.npz"), **inputs)
        np.savez(os.path.join(folder, "expected.npz"), **expected)
        self.rows.append({"name": f"{model}-{kind}", "model": os.path.join(self.models, model + ".onnx"), "folder": folder,
                          "steps": len(steps), "state": state or {}, "argmax": argmax, "cost": cost})


def silero(m):
    rng = np.random.default_rng(3)
    for rate, chunk, context in ((16000, 512, 64), (8000, 256, 32)):
        audio = {"speech": speech(rate, STEPS * chunk / rate),
                 "noise": (0.3 * rng.standard_normal(STEPS * chunk)).astype(np.float32)}
        for model in ("silero_vad", "silero_vad_16k_op15", "silero_vad_half", "silero_vad_op18_ifless"):
            if rate == 8000 and model in ("silero_vad_16k_op15", "silero_vad_half"):
                continue
            for kind, x in audio.items():
                padded = np.concatenate([np.zeros(context, np.float32), x])
                steps = [{"input": padded[None, k * chunk:k * chunk + chunk + context]} for k in range(STEPS)]
                for step in steps:
                    if model != "silero_vad_half":
                        step["sr"] = np.array(rate, np.int64)
                steps[0]["state"] = np.zeros((2, 1, 128), np.float32)
                m.case(model, f"{kind}-{rate // 1000}k", steps, {"stateN": "state"}, cost=20)
    frames = [np.concatenate([np.zeros(64, np.float32), speech(16000, STEPS * 512 / 16000)]), rng.standard_normal(64 + 51200) * 0.3]
    zero = np.zeros((1, 1, 128), np.float32)
    for kind, x in zip(("speech", "noise"), frames):
        chunks = np.stack([x[k * 512:k * 512 + 576] for k in range(STEPS)]).astype(np.float32)
        m.case("silero_vad_v6", kind, [{"input": chunks, "h": zero, "c": zero}], cost=10)
        steps = [{"input": chunks[k:k + 1]} for k in range(STEPS)]
        steps[0].update(h=zero, c=zero)
        m.case("silero_vad_v6", kind + "-steps", steps, {"hn": "h", "cn": "c"}, cost=20)


def magika(m):
    def features(data):
        head = list(data[:1024]) + [256] * (1024 - len(data[:1024]))
        tail = [256] * (1024 - len(data[-1024:])) + list(data[-1024:])
        return np.array([head + tail], np.int32)
    with open(__file__, "rb") as f:
        source = features(f.read())
    # A file much shorter than the window is mostly padding, which makes the network ill-conditioned: ONNX Runtime
    # differs from itself by 1e-4 between batch sizes. So the second row is a full-length document.
    table = features(json.dumps([{"row": k, "name": f"item {k * 7919 % 1000}"} for k in range(90)]).encode())
    rng = np.random.default_rng(5)
    m.case("magika", "source", [{"bytes": source}], argmax=1, cost=8)
    m.case("magika", "batch", [{"bytes": np.concatenate([source, table])}], argmax=1, cost=16)
    m.case("magika", "random", [{"bytes": rng.integers(0, 257, (1, 2048)).astype(np.int32)}], cost=8)


def basic_pitch(m):
    rng = np.random.default_rng(6)
    voice = speech(22050, 2)[:43844]
    m.case("basic_pitch", "speech", [{"serving_default_input_2:0": voice.reshape(1, -1, 1)}], cost=60)
    noise = (0.1 * rng.standard_normal((1, 43844, 1))).astype(np.float32)
    m.case("basic_pitch", "noise", [{"serving_default_input_2:0": noise}], cost=60)


def ocr(m):
    rng = np.random.default_rng(9)
    noise = lambda *shape: rng.uniform(-1, 1, shape).astype(np.float32)  # noqa: E731
    line = text_image("Hello ingot 2026", 320, 48)
    m.case("ppocr_rec", "text", [{"x": line}], argmax=2, cost=60)
    m.case("ppocr_rec", "noise", [{"x": noise(1, 3, 48, 160)}], cost=30)
    m.case("ppocr_cls", "upright", [{"x": text_image("ingot", 192, 48)}], argmax=1)
    m.case("ppocr_cls", "turned", [{"x": text_image("ingot", 192, 48, True)}], argmax=1)
    m.case("ppocr_cls", "noise", [{"x": noise(2, 3, 48, 192)}])
    m.case("ppocr_det", "page", [{"x": page(224)}], cost=60)
    m.case("ppocr_det", "noise", [{"x": noise(1, 3, 96, 160)}], cost=30)


def main():
    m = Maker(*sys.argv[1:])
    for part in (silero, magika, basic_pitch, ocr):
        part(m)
    with open(os.path.join(m.out, "cases.json"), "w") as f:
        json.dump(m.rows, f, indent=1)


os.makedirs(sys.argv[2], exist_ok=True)
main()
