"""Trained estimators (test/make/mkestimators.py): equal labels, and scores within 1e-5 of ONNX Runtime and of the training
library.

They run on every engine, on vectors, and as compiled C.
Skipped without the packages of test/requirements-ml.txt (see build/setup.log).
"""
import os
import shutil
from lib.core import Fail, Skip, Test, explain, run, tail

LIMIT = 60
NEAR = "1e-5"
WAYS = {"ref": [], "interp": [], "vectors": ["--march", "avx2"], "c": []}
LEAST = 180  # estimators


def load(env):
    return env.cases("estimators", "mkestimators.py", ["requirements-ml.txt"], env.need_ml())


def check(env, folder, case, way):
    where = os.path.join(folder, case["name"])
    for judge in ("ort",) if case["apart"] else ("ort", "library"):
        got = run([env.need_ingot(), "verify", os.path.join(where, "model.onnx"), "--data", os.path.join(where, judge), "--quiet",
                   "--engine", "interp" if way == "vectors" else way, *WAYS[way], "--rtol", NEAR, "--atol", NEAR], LIMIT,
                  env={"CC": "tcc" if shutil.which("tcc") else "cc"})
        if got.rc or got.timed_out:
            raise Fail(f"{judge}: {explain(got)}: {tail(got.text() + ' ' + got.out.decode('utf-8', 'replace'), 6)}")


def count(table):
    if len(table) < LEAST:
        raise Fail(f"{len(table)} estimators, expected at least {LEAST}")


def peer(env, folder):
    """verify with ONNX Runtime: the maps of ZipMap, which it sorts by keys, and strings are compared too."""
    for name in ("zipmap", "zipmap_names"):
        got = run([env.need_ingot(), "verify", os.path.join(folder, name, "model.onnx"), "--python", env.python], LIMIT)
        rows = [line for line in got.out.decode().splitlines() if line.startswith("onnxruntime") and "probability" in line]
        if got.rc or len(rows) != 2:
            raise Fail(f"{name}: {explain(got)}: {tail(got.text() + ' ' + got.out.decode('utf-8', 'replace'), 6)}")


def tests(env):
    try:
        folder, table = load(env)
    except (Fail, Skip) as e:
        def say(e=e):
            raise e
        return [Test("estimators/setup", say)]
    return [Test("estimators/count", lambda: count(table)), Test("estimators/peer", lambda: peer(env, folder))] + [
        Test(f"estimators/{case['name']}/{way}", lambda c=case, w=way: check(env, folder, c, w), 0.05) for case in table for way in WAYS]
