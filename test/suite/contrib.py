"""Operators the official suite does not reach, or hardly: test/ops/*.py, judged by ONNX Runtime, on every engine."""
import json
import os
import shutil
from lib.core import ENGINES, Fail, Skip, Test, explain, run, tail

LIMIT = 60


def load(env):
    out = os.path.join(env.build, "ops")

    def make():
        shutil.rmtree(out, ignore_errors=True)
        os.makedirs(out)
        env.script("mkops.py", out)

    env.need_python()
    env.generated(out, ["mkops.py", "ops", "requirements.txt"], make)
    with open(os.path.join(out, "cases.json")) as f:
        return out, json.load(f)


def check(env, folder, case, engine):
    where = os.path.join(folder, case["name"])
    got = run([env.need_ingot(), "verify", os.path.join(where, "model.onnx"), "--data", os.path.join(where, "test_data_set_0"),
               "--engine", engine, "--rtol", str(case["rtol"]), "--atol", str(case["atol"])], LIMIT)
    if got.rc or got.timed_out:
        raise Fail(f"{explain(got)}: {tail(got.text() + ' ' + got.out.decode('utf-8', 'replace'), 6)}")


def tests(env):
    try:
        folder, table = load(env)
    except (Fail, Skip) as e:
        def say(e=e):
            raise e
        return [Test("contrib/setup", say)]
    return [Test(f"contrib/{case['name']}/{engine}", lambda c=case, g=engine: check(env, folder, c, g), 0.05)
            for case in table for engine in ENGINES]
