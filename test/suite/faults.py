"""The unit program oom in a special build (INGOT_HOSTILE, under ASan and UBSan): every allocation is separate, fails in turn,
and arrays move when they grow.

heavy/sanitize.py runs threads under ThreadSanitizer.
Small networks and the text of every pass run through that build.
No object file of the library has writable static data.
"""
import os
import re
import shlex
import shutil
from lib import onnxfile as onnx
from lib import tfile
from lib.core import ROOT, SANITIZER, Fail, Skip, Test, explain, run, tail

LIMIT = 300
STRIDE = 149  # allocations between two that fail; `build-asan/hostile/oom 1` fails each
PLACE = {"hostile": ("build-asan", "hostile"), "tsan": ("build-tsan", "unit")}


def program(env, build, name, *args):
    env.make(build)
    got = run([os.path.join(ROOT, *PLACE[build], name), *args], LIMIT, cwd=ROOT, merge=True,
              env={**SANITIZER, "TSAN_OPTIONS": "exitcode=99"})
    if got.rc or got.timed_out:
        raise Fail(f"{explain(got)}: {tail(got.out.decode('utf-8', 'replace'), 30)}")


def network():
    """Channel blocks that a product reads as rows, a branch, and a symbolic batch."""
    g, then, other = onnx.Graph(), onnx.Graph("t"), onnx.Graph("e")
    x = g.input(["n", 16, 8, 8], name="x")
    a = g.node("Relu", [g.node("Conv", [x, g.weight(16, 16, 3, 3)], pads=[1, 1, 1, 1])])
    b = g.node("Conv", [a, g.weight(32, 16, 1, 1)])
    rows = g.node("MatMul", [a, g.node("Slice", [b, g.ints(0), g.ints(16), g.ints(1)])])
    then.output(then.node("Softmax", [rows], ["soft"]), None)
    other.output(other.node("Sub", [rows, a], ["less"]), None)
    large = g.node("Greater", [g.node("ReduceSum", [rows], keepdims=0), g.const([], [0])])
    g.output(g.node("If", [large], ["y"], then_branch=then, else_branch=other), None)
    flat = g.node("Transpose", [g.node("Reshape", [b, g.ints(0, 32, 64)])], perm=[0, 2, 1])
    g.output(g.node("Tanh", [flat], ["z"]), None)
    g.output(g.node("ArgMax", [b], ["w"], axis=1), None, 7)
    return onnx.model(g)


def moving(env):
    env.make("hostile")
    work = env.scratch("faults", "moving")
    with open(os.path.join(work, "net.onnx"), "wb") as f:
        f.write(network())
    for batch in (["-d", "n=2"], ["--max-shapes", "x:4x16x8x8"]):
        for flags in (["--march", "scalar"], ["--march", "multi"], ["--march", "avx512", "--threads", "2"], ["--march", "neon", "--optimize-for", "ram"]):
            got = run([os.path.join(ROOT, *PLACE["hostile"], "ingot"), "compile", "net.onnx", "-o", "net.c", *batch, *flags], LIMIT, cwd=work, merge=True, env=SANITIZER)
            if got.rc or got.timed_out:
                raise Fail(f"{explain(got)}: {tail(got.out.decode('utf-8', 'replace'), 30)}")


def passes(env):
    """Every pass on the last of the texts that show it: no pointer into a moved array is used."""
    env.make("hostile")
    for t in {os.path.dirname(t.path): t for t in tfile.files("golden")}.values():
        got = run([os.path.join(ROOT, *PLACE["hostile"], "ingot"), "opt", *shlex.split(t.one("run")), t.write(env)], LIMIT, merge=True, env=SANITIZER)
        if got.rc or got.timed_out:
            raise Fail(f"{os.path.relpath(t.path, ROOT)}: {explain(got)}: {tail(got.out.decode('utf-8', 'replace'), 30)}")


def no_state(env):
    if not shutil.which("size"):
        raise Skip("size (binutils) is not installed")
    library = os.path.join(env.build, "objects.a")
    if not os.path.exists(library):
        raise Skip("build/objects.a is not built")
    got = run(["size", "-A", library], LIMIT)
    if got.rc:
        raise Fail(f"size: {got.text()}")
    file, count = None, 0
    for line in got.out.decode().splitlines():
        m = re.match(r"(\S+)\s+\(ex ", line)
        if m:
            file, count = m[1], count + 1
        m = re.match(r"\.(data|bss|tdata|tbss)(?:\.(?!rel\.ro)\S+)?\s+(\d+)", line)
        if m and int(m[2]):
            raise Fail(f"{file} has {m[2]} bytes of writable static data ({line.split()[0]})")
    if count < 50:
        raise Fail(f"size lists {count} object files")


def tests(env):
    return [Test("faults/oom-hostile", lambda: program(env, "hostile", "oom", str(STRIDE)), cost=60),
            Test("faults/moving-hostile", lambda: moving(env), cost=20),
            Test("faults/passes-hostile", lambda: passes(env), cost=20),
            Test("faults/no-state", lambda: no_state(env))]
