"""Models in the style of real exporters (test/make/mkhabits.py) compared with ONNX Runtime, on every engine, with the IR
verified after every pass.

If the case says so, no integer operator may remain after the passes: shape arithmetic is folded.
"""
import json
import os
import re
from lib import npy
from lib.core import Fail, Skip, Test, explain, run, tail

LIMIT = 60
ATOL, RTOL = 1e-6, 1e-5
EVERY = ("ref", "interp", "c")


def near(name, raw, expected):
    a, b = npy.decode(raw), npy.decode(expected)
    if (a.kind, a.shape) != (b.kind, b.shape):
        raise Fail(f"{name} is {a.kind}{list(a.shape)}, expected {b.kind}{list(b.shape)}")
    for i, (x, y) in enumerate(zip(a.data, b.data)):
        if not abs(x - y) <= ATOL + RTOL * abs(y):
            raise Fail(f"{name}: element {i} is {x!r}, expected {y!r}")


def folded(env, model, given):
    got = run([env.ingot, "opt", model, "--inputs", given, "--stop=dce"], LIMIT)
    for line in got.out.decode().splitlines():
        m = re.match(r"\s*%\S+: [iu]\d+\[.*?\] = (\w+)", line)
        if m and m[1] not in ("const", "param"):
            raise Fail(f"left after the passes: {line.strip()}")


def check(env, case, engine):
    env.need_ingot()
    model, given = os.path.join(case["folder"], "model.onnx"), os.path.join(case["folder"], "inputs.npz")
    out = os.path.join(env.scratch("habits", case["name"]), engine + ".npz")
    got = run([env.ingot, "opt", model, "--inputs", given, "--check"], LIMIT)
    if got.rc not in case["codes"] or got.timed_out:
        raise Fail(f"opt --check: {explain(got)}: {tail(got.text(), 4)}")
    got = run([env.ingot, "run", model, "--inputs", given, "--engine", engine, "--output", out], LIMIT)
    if got.rc not in case["codes"] or got.timed_out:
        raise Fail(f"{explain(got)}: {tail(got.text(), 4)}")
    if case["warns"] is not None:
        said = [x for x in got.text().splitlines() if "warning: " in x]
        if len(said) != len(case["warns"]) or any(w not in s for w, s in zip(case["warns"], said)):
            raise Fail(f"warnings are {said}, expected {case['warns']}")
    if got.rc:
        return
    have, want = npy.load_npz_raw(out), npy.load_npz_raw(os.path.join(case["folder"], "expected.npz"))
    if want and have.keys() != want.keys():
        raise Fail(f"outputs are {' '.join(have)}, expected {' '.join(want)}")
    for name in want:
        near(name, have[name], want[name])
    if case["folds"]:
        folded(env, model, given)


def tests(env):
    out = os.path.join(env.build, "habits")
    if not env.python:
        def no_python():
            raise Skip("no Python environment (see build/setup.log), so the models cannot be made")
        return [Test("habits/models", no_python)]
    try:
        env.generated(out, ["make/mkhabits.py"], lambda: env.script("mkhabits.py", out))
    except Fail as e:
        def broken(e=e):
            raise e
        return [Test("habits/models", broken)]
    with open(os.path.join(out, "cases.json"), encoding="ascii") as f:
        cases = json.load(f)
    return [Test(f"habits/{c['name']}-{e}", lambda c=c, e=e: check(env, c, e)) for c in cases for e in EVERY]
