#!/usr/bin/env python3
"""`make bench-plan`: compares the sizes of memory plans with the lower bound.

First come hard cases with a known optimum (bench/plan.c; goal: within 10 % in 5 s). Then come the built-in model, the models
of build/models and the light networks of the onnx package (goal: within 1 %).
"""
import glob
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, "build")
INGOT = os.environ.get("INGOT", os.path.join(BUILD, "ingot"))
SHAPES = {"ppocr_cls": "x:1x3x48x192", "ppocr_det": "x:1x3x640x640", "ppocr_rec": "x:1x3x48x320", "silero_vad_": "input:1x512", "silero_vad_v6": "",
          "bert-base": "input_ids:1x128,attention_mask:1x128"}


def models():
    found = [os.path.join(ROOT, "models", "digits.onnx")]
    for pattern in ("models/*.onnx", "bench/*.onnx", "bench/nets/*.onnx", "venv/lib/python3*/site-packages/onnx/backend/test/data/light/*.onnx"):
        found += sorted(glob.glob(os.path.join(BUILD, pattern)))
    return found


def memory(path):
    known = [name for name in SHAPES if os.path.basename(path).startswith(name)]
    shape = SHAPES[max(known, key=len)] if known else ""
    cmd = [INGOT, "inspect", path, "--json"] + (["--shapes", shape] if shape else [])
    got = subprocess.run(cmd, capture_output=True, check=False)
    return json.loads(got.stdout)["memory"] if got.returncode == 0 else None


def main():
    good = subprocess.run([os.path.join(BUILD, "bench", "plan")], check=False).returncode == 0
    for path in models():
        m = memory(path)
        name = os.path.basename(path)
        if not m or not m["planned"]:
            print(f"{name:32} not planned: {m['why'] if m else 'refused'}")
            continue
        ratio = m["arena"] / m["lower_bound"] if m["lower_bound"] else 1
        good = good and ratio <= 1.01
        print(f"{name:32} arena {m['arena']:10} = {ratio:.4f} of the lower bound, {m['reuse']:.1f} times less than without reuse")
    print("ok" if good else "TOO MUCH")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
