"""Single operators with random attributes (test/make/genparam.py), with a fixed seed, compared with ONNX Runtime."""
import os
from lib.core import ROOT, Fail, Test, explain, run, tail

LIMIT = 200
RUNS = (("interp", 40), ("ref", 12), ("c", 2))


def check(env, engine, count):
    env.need_ingot()
    got = run([env.need_python(), os.path.join(ROOT, "test", "make", "genparam.py"), "--count", str(count), "--engine", engine], LIMIT)
    if got.rc or got.timed_out:
        bad = [x for x in got.out.decode("utf-8", "replace").splitlines() if x.startswith("FAILED")]
        raise Fail(f"{explain(got)}: {bad[:3] or tail(got.text(), 4)}")


def tests(env):
    return [Test(f"params/{engine}", lambda e=engine, n=count: check(env, e, n), 10) for engine, count in RUNS]
