"""Models of TensorFlow Lite: test/tflite/*.py, judged by the reference kernels of its own interpreter, on every engine and, in part, as C.

Floats agree within a tolerance. Integers are the same; a case that may be steps apart says by how many, in how many places at most, and why. Broken files
are in this suite too: cut off, with bytes turned, with numbers that lie.
"""
import os
from lib import npy
from lib.core import Fail, Skip, Test, explain, run, tail, want

LIMIT = 60
ENGINES = ("ref", "vm")  # interp is compared with vm by other suites


def need_tflite(env):
    env.need_python()
    path = os.path.join(env.build, "tflite")
    if not os.path.exists(os.path.join(path, "requirements.txt")):
        raise Skip("the packages of test/requirements-tflite.txt could not be had (see build/setup.log)")
    return path


def load(env):
    return env.cases("tflitecases", "mktflite.py", ["tflite", "make/tflitefile.py", "requirements-tflite.txt"], path=need_tflite(env))


def off(case, have, expected):
    """None, or how far two arrays of integers are apart, where that is more than the case allows."""
    if (have.kind, have.shape) != (expected.kind, expected.shape):
        return f"is {have.kind}{list(have.shape)}, expected {expected.kind}{list(expected.shape)}"
    apart = [abs(int(a) - int(b)) for a, b in zip(have.data, expected.data)]
    n = sum(x > 0 for x in apart)
    if n and (max(apart) > case["steps"] or n > case["share"] * len(apart)):
        at = next(i for i, x in enumerate(apart) if x)
        return f"{n} of {len(apart)} differ, by at most {max(apart)}: element {at} is {have.data[at]}, expected {expected.data[at]}"
    return None


def check(env, folder, case, engine):
    where, to = os.path.join(folder, case["name"]), os.path.join(env.scratch("tflite", *case["name"].split("/")), f"{engine}.npz")
    for k in range(case["runs"]):
        how = ["--steps", str(k + 1)] if case["state"] else []
        got = run([env.need_ingot(), "run", os.path.join(where, "model.tflite"), "--inputs", os.path.join(where, f"in_{0 if case['state'] else k}.npz"),
                   "--output", to, "--engine", engine, *how], LIMIT)
        if case["refuse"]:
            want(got.rc == 3 and case["refuse"] in got.text(), f"{explain(got)}, expected a refusal that says {case['refuse']!r}: {tail(got.text(), 3)}")
            return
        if got.rc or got.timed_out:
            raise Fail(f"{explain(got)}: {tail(got.text(), 6)}")
        have, expected = npy.load_npz(to), npy.load_npz(os.path.join(where, f"out_{k}.npz"))
        want(list(have) == list(expected), f"outputs are {list(have)}, expected {list(expected)}")
        for name, y in expected.items():
            bad = npy.differ(have[name], y, case["rtol"], case["atol"]) if y.kind in ("f32", "f16", "f64") else off(case, have[name], y)
            if bad:
                raise Fail(f"run {k}, output {name}: {bad}")


def tests(env):
    try:
        folder, table = load(env)
    except (Fail, Skip) as e:
        def say(e=e):
            raise e
        return [Test("tflite/setup", say)]
    return [Test(f"tflite/{case['name']}/{engine}", lambda c=case, g=engine: check(env, folder, c, g), 0.05)
            for case in table for engine in (*ENGINES, *(("c",) if case["compiled"] else ()))]
