"""Random graphs over the whole operator table: ref, interp with each pass skipped in turn, and C agree; also graphs found
earlier.

`make gen N=20000` and `make gen-onnx N=2000` run for longer; they reduce failures and print them in the form of test/gen/found.
"""
import os
import shutil
from lib import cpu
from lib.core import ROOT, Fail, Skip, Test, explain, run, tail

LIMIT = 300
PIECES, COUNT = 3, 100  # graphs of all kinds
LINEAR = "CONTRACT,WINDOW,MAP,VIEW,pad"  # the operators in which models spend most time; gcc -O2 may vectorize them


def program(env):
    path = os.path.join(env.build, "randgraph")
    if not os.path.exists(path):
        raise Skip("build/randgraph is not built")
    if not shutil.which("tcc"):
        raise Skip("tcc is not installed")
    return path


def check(env, *args):
    got = run([program(env), "--folder", env.scratch("gen"), *args], LIMIT, cwd=ROOT, merge=True)
    if got.rc or got.timed_out:
        raise Fail(f"{explain(got)}: {tail(got.out.decode('utf-8', 'replace'), 40)}")


def models(env):
    """Random ONNX models compared with ONNX Runtime."""
    if not os.path.exists(os.path.join(env.build, "libingot.so")):
        raise Skip("build/libingot.so is not built")
    got = run([env.need_python(), os.path.join(ROOT, "test", "make", "genonnx.py"), "--count", "200", "--save", env.scratch("genonnx")], LIMIT,
              cwd=ROOT, merge=True)
    if got.rc or got.timed_out:
        raise Fail(f"{explain(got)}: {tail(got.out.decode('utf-8', 'replace'), 30)}")


def tests(env):
    out = [Test(f"gen/all-{k}", lambda k=k: check(env, "--seed", str(k * COUNT), "--count", str(COUNT)), cost=4)
           for k in range(PIECES)]
    out.append(Test("gen/linear", lambda: check(env, "--seed", "1", "--count", "40", "--only", LINEAR, "--mode", "exact",
                                                "--cc", "gcc -O2"), cost=15))
    out.append(Test("gen/vectors", lambda: check(env, "--seed", "1", "--count", "60", "--only", LINEAR, "--target", "native",
                                                 "--cc", " ".join(["gcc", "-O1", *cpu.native_flags()])), cost=20))
    out.append(Test("gen/onnx", lambda: models(env), cost=15))
    folder = os.path.join(ROOT, "test", "gen", "found")
    return out + [Test(f"gen/{n[:-2]}", lambda n=n: check(env, "--replay", os.path.join(folder, n)))
                  for n in sorted(os.listdir(folder)) if n.endswith(".t")]
