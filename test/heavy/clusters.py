"""Ray Data and Spark with their real packages, several processes on this machine, of which some are killed in the middle: every row comes back
once, none is lost, and has the bits of a run elsewhere. And mypy on the package."""
import json
import os
import shutil
import tempfile
from lib.core import ROOT, Skip, Test, must, run, want
from suite.python import models

ROWS = 6000
LIMIT = 420
MYPY = ["--ignore-missing-imports", "--follow-imports=silent", "--disable-error-code=call-overload"]  # hints of Spark name no functions that are made at run time


def python(env):
    path = os.path.join(env.build, "clusters", "bin", "python")
    if not os.path.exists(os.path.join(env.build, "clusters", "requirements.txt")):
        raise Skip("the packages of test/requirements-clusters.txt could not be had (see build/setup.log); HEAVY=1 test/setup fetches them")
    return path


def rows(env, kind, killed):
    program, folder = python(env), env.scratch("clusters", kind)
    if kind == "spark" and not shutil.which("java"):
        raise Skip("no Java: Debian's package openjdk-17-jre-headless has it")
    shutil.rmtree(folder)
    os.makedirs(folder)
    short = tempfile.mkdtemp(prefix="c-")  # Ray has sockets there, whose names may not be long
    try:
        out = must([program, os.path.join(ROOT, "test", "python", "cluster.py"), kind, os.path.join(ROOT, "models", "digits.onnx"), folder], kind, timeout=LIMIT, cwd=folder,
                   env={"PYTHONPATH": os.path.join(ROOT, "python"), "INGOT_LIBRARY": os.path.join(env.build, "libingot.so"), "RAY_FOLDER": short, "HOME": short,
                        "PYSPARK_PYTHON": program, "PYSPARK_DRIVER_PYTHON": program, "RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"})
    finally:
        shutil.rmtree(short, ignore_errors=True)
    got = json.loads(out.strip().splitlines()[-1])
    want(got["rows"] == got["different"] == ROWS and got["wrong"] == 0, f"{kind}: {got}")
    want(got["killed"] == killed, f"{kind}: nobody was killed: {got}")
    want(got["workers"] >= 2, f"{kind}: one process did everything: {got}")


def frames(env):
    """Frames of pandas, as Spark hands them over, those without rows among them."""
    program = python(env)
    must([program, "-c", "import pandas"], "import pandas")
    must([program, os.path.join(ROOT, "test", "python", "check.py"), models(env), "frames"], "check.py frames", timeout=LIMIT,
         env={"PYTHONPATH": os.path.join(ROOT, "python"), "INGOT_LIBRARY": os.path.join(env.build, "libingot.so")})


def hints(env):
    """mypy takes the package's type hints, and sees by them what is wrong with somebody's program."""
    program, folder = python(env), env.scratch("clusters", "hints")
    package = os.path.join(ROOT, "python", "ingot")
    must([program, "-m", "mypy", *MYPY, "--cache-dir", folder, package], "mypy", timeout=LIMIT, cwd=os.path.dirname(package))
    path = os.path.join(folder, "user.py")
    with open(path, "w") as f:
        f.write('import ingot\nnet = ingot.compile("m.onnx", threads=2)\nsize: int = net.arena_bytes\nnet.c_source + 1\ningot.compile(threads="x")\n')
    got = run([program, "-m", "mypy", *MYPY, "--cache-dir", folder, path], LIMIT, cwd=folder, env={"MYPYPATH": os.path.dirname(package)})
    lines = sorted({int(x.split(":")[1]) for x in got.out.decode().splitlines() if ": error:" in x})
    want(lines == [4, 5], f"mypy finds errors in lines {lines} of a program with two, 4 and 5: {got.text()}")


def tests(env):
    return [Test("heavy/clusters/hints", lambda: hints(env), cost=20),
            Test("heavy/clusters/frames", lambda: frames(env), cost=5),
            Test("heavy/clusters/ray", lambda: rows(env, "ray", ["killed-worker"]), cost=60),
            Test("heavy/clusters/spark", lambda: rows(env, "spark", ["killed-executor", "killed-worker"]), cost=60)]
