"""Block-quantized weights of 4 and 8 bits (MatMulNBits, DequantizeLinear with block_size): they stay packed where that pays.

Products agree with ONNX Runtime, with f32 activations up to rounding, with int8 ones (accuracy_level 4) up to their precision.
interp and C give the same bits.
"""
import json
import os
import re

from lib import cpu, npy
from lib.core import Fail, Test, must, run, want

FLOATS, BYTES = 2e-6, 2e-2  # relative to the largest result
STAY = {"n4": 5, "n4_zero": 6, "n4_float": 6, "n8": 10, "n4_bytes": 6, "n8_bytes": 9, "d4": 6, "d4_u": 6, "d8": 10}  # bits per element, including scales
FLOAT = ("n4_small", "n4_narrow", "n4_many", "d4_along")


def made(env):
    out = os.path.join(env.build, "packed")
    env.generated(out, ["make/mkpacked.py", "requirements.txt"], lambda: env.script("mkpacked.py", out))
    return out


def product(env, name, march):
    cpu.need(march)
    model = os.path.join(made(env), name + ".onnx")
    known = npy.load_npz(model[:-5] + ".npz")
    work, raw = env.scratch("packed", name), {}
    npy.save_npz(os.path.join(work, "in.npz"), {"x": known["x"]})
    for engine in ("interp", "c"):
        out = os.path.join(work, engine + ".npz")
        must([env.need_ingot(), "run", model, "--inputs", os.path.join(work, "in.npz"), "--engine", engine, "--march", march, "--quiet", "-o", out], engine)
        raw[engine] = npy.load_npz_raw(out)
    if raw["interp"] != raw["c"]:
        raise Fail("interp and c differ")
    got, right = (list(a.data) for a in (npy.load_npz(out)["y"], known["y"]))
    worst = max(abs(a - b) for a, b in zip(got, right)) / max(map(abs, right))
    want(worst < (BYTES if name.endswith("bytes") else FLOATS), f"{worst:g} of the largest result")


def sizes(env):
    for name in (*STAY, *FLOAT):
        got = run([env.need_ingot(), "inspect", os.path.join(made(env), name + ".onnx"), "--json"], 120)
        facts = json.loads(got.out)
        bits = facts["memory"]["weights"] * 8 * int(re.search(r"\[(\d+)", facts["outputs"][0]["type"])[1]) / facts["multiply_adds"]
        want(abs(bits - STAY.get(name, 32)) < 0.5, f"{name}: {bits:.2f} bits for a weight")


def tests(env):
    cases = [Test(f"packed/{name}/{march}", lambda name=name, march=march: product(env, name, march), cost=1)
             for name in (*STAY, "n4_many") for march in (("scalar", "avx2") if name in ("n4_zero", "n4_bytes") else ("avx2",))]
    return [*cases, Test("packed/sizes", lambda: sizes(env), cost=2)]
