"""The networks in the wheel of mediapipe compared with the interpreter of TensorFlow Lite.

If the interpreter cannot run one because of a custom operator of mediapipe, ingot must refuse it and name that operator.
"""
import os
from lib import npy
from lib.core import ROOT, Fail, Skip, Test, explain, run, tail, want

LIMIT = 120
NEAR = 5e-4  # of the largest element


def models():
    with open(os.path.join(ROOT, "test", "models.txt")) as f:
        return [x.split()[2] for x in f if x.startswith("mediapipe==")]


def check(env, name):
    path, packages = os.path.join(env.build, "models", name), env.need_packages("tflite")
    if not os.path.exists(path):
        raise Skip("the models of mediapipe could not be had; HEAVY=1 test/setup fetches them")
    where = env.scratch("mediapipe", name)
    judge = run([env.need_python(), os.path.join(ROOT, "test", "make", "asktflite.py"), path, where], LIMIT, env={"PYTHONPATH": packages})
    mine = run([env.need_ingot(), "run", path, "--inputs", os.path.join(where, "in.npz"), "--output", os.path.join(where, "have.npz"), "--engine", "c"], LIMIT) \
        if judge.rc == 0 else run([env.need_ingot(), "compile", path, "-o", os.path.join(where, "net.c")], LIMIT)
    if judge.rc == 3:
        custom = judge.out.decode().split("unresolved custom op: ")[1].split(".")[0]
        want(mine.rc == 3 and f"custom operator {custom} is not supported" in mine.text(), f"{explain(mine)}: {tail(mine.text(), 3)}")
        return
    want(judge.rc == 0, f"the judge: {explain(judge)}: {tail(judge.text(), 3)}")
    want(mine.rc == 0, f"{explain(mine)}: {tail(mine.text(), 3)}")
    have, expected = npy.load_npz(os.path.join(where, "have.npz")), npy.load_npz(os.path.join(where, "out.npz"))
    want(list(have) == list(expected), f"outputs are {list(have)}, expected {list(expected)}")
    for key, y in expected.items():
        most = max(map(abs, y.data))
        apart = max(abs(a - b) for a, b in zip(have[key].data, y.data))
        if have[key].shape != y.shape or not apart <= NEAR * most:
            raise Fail(f"{key}: off by {apart} of {most}, shape {have[key].shape}, expected {y.shape}")


def tests(env):
    return [Test(f"heavy/mediapipe/{name}", lambda name=name: check(env, name), cost=8) for name in models()]
