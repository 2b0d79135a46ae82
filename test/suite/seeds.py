"""Small models of test/seeds, each of which one operator or one pass once refused or computed wrongly: every engine against ref, and ONNX Runtime."""
import os
from lib.core import ROOT, Fail, Test, explain, run, tail

SEEDS = os.path.join(ROOT, "test", "seeds")


def check(env, name):
    env.need_ingot()
    got = run([env.ingot, "verify", os.path.join(SEEDS, name), "--python", env.need_python()], 60)
    if got.rc or b"onnxruntime/ref" not in got.out:
        raise Fail(f"{explain(got)}: {tail(got.text(), 4)}")


def tests(env):
    return [Test(f"seeds/{name}", lambda name=name: check(env, name), cost=1) for name in sorted(os.listdir(SEEDS))]
