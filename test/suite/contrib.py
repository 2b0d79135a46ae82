"""Operators the official suite does not reach, or hardly: test/ops/*.py, judged by ONNX Runtime, on every engine. And trained
estimators (test/mkestimators.py), where the packages of test/requirements-ml.txt are installed in build/venv."""
import json
import os
import shutil
from lib.core import ENGINES, Fail, Skip, Test, explain, run, tail

LIMIT = 60


def load(env, name, script, sources):
    out = os.path.join(env.build, name)

    def make():
        shutil.rmtree(out, ignore_errors=True)
        os.makedirs(out)
        env.script(script, out)

    env.need_python()
    env.generated(out, [script, *sources], make)
    with open(os.path.join(out, "cases.json")) as f:
        return out, json.load(f)


def load_estimators(env):
    packages = "import skl2onnx, onnxmltools, lightgbm, xgboost"
    if run([env.need_python(), "-c", packages], LIMIT).rc:
        raise Skip("the packages of test/requirements-ml.txt are not installed")
    return load(env, "estimators", "mkestimators.py", ["requirements-ml.txt"])


def check(env, folder, case, engine):
    where = os.path.join(folder, case["name"])
    got = run([env.need_ingot(), "verify", os.path.join(where, "model.onnx"), "--data", os.path.join(where, "test_data_set_0"),
               "--engine", engine, "--rtol", str(case["rtol"]), "--atol", str(case["atol"])], LIMIT)
    if got.rc or got.timed_out:
        raise Fail(f"{explain(got)}: {tail(got.text() + ' ' + got.out.decode('utf-8', 'replace'), 6)}")


def group(env, name, loader):
    try:
        folder, table = loader()
    except (Fail, Skip) as e:
        def say(e=e):
            raise e
        return [Test(f"{name}/setup", say)]
    return [Test(f"{name}/{case['name']}/{engine}", lambda c=case, g=engine: check(env, folder, c, g), 0.05)
            for case in table for engine in ENGINES]


def tests(env):
    return [*group(env, "contrib", lambda: load(env, "ops", "mkops.py", ["ops", "requirements.txt"])),
            *group(env, "estimators", lambda: load_estimators(env))]
