"""The C programs of test/unit, in the ordinary build and under ASan+UBSan. Exit 0 is a pass."""
import os
from lib.core import ROOT, Fail, Skip, Test, explain, run, tail

LIMIT = 120


def check(env, build, name):
    if build == "build-asan":
        env.make("asan")
    path = os.path.join(ROOT, build, "unit", name)
    if not os.path.exists(path):
        raise Skip(f"{build}/unit is not built")
    got = run([path], LIMIT, cwd=ROOT, merge=True)
    if got.rc or got.timed_out:
        raise Fail(f"{explain(got)}: {tail(got.out.decode('utf-8', 'replace'))}")


def tests(env):
    folder = os.path.join(ROOT, "test", "unit")
    names = sorted(n[:-2] for n in os.listdir(folder) if n.endswith(".c")) if os.path.isdir(folder) else []
    return [Test(f"unit/{name}{mark}", lambda b=build, n=name: check(env, b, n), cost=1)
            for name in names for build, mark in (("build", ""), ("build-asan", "-asan"))]
