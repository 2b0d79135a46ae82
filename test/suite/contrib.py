"""Operators that the official suite covers little or not at all: test/ops/*.py on every engine, compared with ONNX Runtime."""
import os
import zipfile
from lib.core import ENGINES, Fail, Skip, Test, explain, run, tail

LIMIT = 60


def load(env):
    env.need_python()
    return env.cases("ops", "mkops.py", ["ops"])


def refused(env, where, engine, words):
    got = run([env.need_ingot(), "run", os.path.join(where, "model.onnx"), "--data", os.path.join(where, "test_data_set_0"),
               "--engine", engine], LIMIT)
    if got.rc not in (3, 4) or words not in got.text():
        raise Fail(f"{explain(got)}, expected a refusal that says {words!r}: {tail(got.text(), 3)}")


def check(env, folder, case, engine):
    where = os.path.join(folder, case["name"])
    if case.get("refuse"):
        return refused(env, where, engine, case["refuse"])
    if case.get("without"):
        got = run([env.need_ingot(), "opt", os.path.join(where, "model.onnx"), "--stop=canon"], LIMIT)
        if got.rc or f" = {case['without']}(" in got.out.decode():
            raise Fail(f"{case['without']} is left after the passes, or: {explain(got)}")
    got = run([env.need_ingot(), "verify", os.path.join(where, "model.onnx"), "--data", os.path.join(where, "test_data_set_0"),
               "--engine", engine, "--rtol", str(case["rtol"]), "--atol", str(case["atol"])], LIMIT)
    if got.rc or got.timed_out:
        raise Fail(f"{explain(got)}: {tail(got.text() + ' ' + got.out.decode('utf-8', 'replace'), 6)}")


def archive(env, folder, name, want):
    """The elements of a sequence are members of the output archive."""
    where, to = os.path.join(folder, name), os.path.join(env.scratch("contrib"), "open.npz")
    got = run([env.need_ingot(), "run", os.path.join(where, "model.onnx"), "--data", os.path.join(where, "test_data_set_0"), "--output", to], LIMIT)
    if got.rc:
        raise Fail(f"{explain(got)}: {tail(got.text(), 3)}")
    with zipfile.ZipFile(to) as z:
        if sorted(z.namelist()) != want:
            raise Fail(f"{name}: {z.namelist()}, expected {want}")


def tests(env):
    try:
        folder, table = load(env)
    except (Fail, Skip) as e:
        def say(e=e):
            raise e
        return [Test("contrib/setup", say)]
    named = Test("contrib/sequence/archive", lambda: archive(env, folder, "sequence/open", ["y.0.npy", "y.1.npy", "y.2.npy"]))
    return [named] + [Test(f"contrib/{case['name']}/{engine}", lambda c=case, g=engine: check(env, folder, c, g), 0.05)
            for case in table for engine in (*ENGINES, *(("c",) if case.get("refuse") or case.get("compiled") else ()))]
