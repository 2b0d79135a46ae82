"""--split: one file, compiled at once or in parts that are linked, is the same program; each part compiles without a warning.

`build` and engine c compile large files in parts.
"""
import os
import re
import signal
import subprocess
import time

from lib import npy
from lib.core import Fail, Test, must, need, run
from lib.onnxfile import Graph, model
from suite import safety

STRICT = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wundef", "-Werror"]
MAIN = """#include "net.h"
#include <stdio.h>
#include <stdlib.h>
extern void *aligned_alloc(size_t align, size_t n);
int main(void) {
  void *memory = aligned_alloc(64, (NET_SELFTEST_BYTES + 63) / 64 * 64);
  printf("%d\\n", net_selftest(memory));
  return 0;
}
"""
CASES = {
    "plain": (["models/digits.onnx", "-d", "batch=1"], ["gcc", "tcc"]),
    "avx2": (["models/digits.onnx", "-d", "batch=1", "--march", "avx2"], ["gcc", "clang", "tcc"]),
    "multi": (["models/digits.onnx", "-d", "batch=1", "--march", "multi"], ["gcc", "clang"]),
    "threads": (["models/digits.onnx", "-d", "batch=64", "--march", "avx2", "--threads", "2", "--threads-grain", "1"], ["gcc"]),
}


def check(env, name):
    env.need_ingot()
    args, compilers = CASES[name]
    work = env.scratch("split", name)
    must([env.ingot, "compile", *args, "--name", "net", "--split", "3", "--selftest", "--quiet", "-o", os.path.join(work, "net.c")],
               "compile")
    with open(os.path.join(work, "main.c"), "w") as f:
        f.write(MAIN)
    for cc in compilers:
        need(cc)
        flags = [*STRICT, "-pthread"] if cc != "tcc" else ["-w"]
        parts = []
        for k in (None, 0, 1, 2):
            parts.append(os.path.join(work, f"part-{k}.o"))
            must([cc, *flags, *([] if k is None else [f"-DNET_PART={k}"]), "-c", "-o", parts[-1], os.path.join(work, "net.c")],
                       f"{cc}, part {k}")
        kernels = [len(re.findall(rb" net_\w+?_\d+(?:_[a-z]\w*)?$", run(["nm", "--defined-only", p], 60).out, re.M)) for p in parts]
        if not all(kernels[2:]):  # part 0 of so small a network has no kernels
            raise Fail(f"kernels of the file and of its parts: {kernels}")
        for objects in (parts[:1], parts[1:]):
            program = os.path.join(work, "main")
            must([cc, *([] if cc == "tcc" else ["-pthread"]), "-I", work, "-o", program, os.path.join(work, "main.c"), *objects], "linking")
            if run([program], 60).out.strip() != b"0":
                raise Fail(f"{cc}, {len(objects)} objects: the self-test does not pass")


def large(env, work):
    """Convolutions with different shapes, and a fast fake compiler that records its arguments."""
    g = Graph()
    x = g.input([1, 8, 24, 24])
    for width in range(8, 48, 8):
        for k in range(1, 6):
            g.output(g.node("Conv", [x, g.weight(width, 8, k, k)]), [1, width, 25 - k, 25 - k])
    for old in ("told", "child"):
        if os.path.exists(os.path.join(work, old)):
            os.unlink(os.path.join(work, old))
    net, cc = os.path.join(work, "net.onnx"), os.path.join(work, "cc")
    with open(net, "wb") as f:
        f.write(model(g))
    with open(cc, "w") as f:
        f.write(f'#!/bin/sh\necho "$*" >>{work}/told\ncase "$*" in *_PART=1*) eval "$PART1";; esac\nexec cc "$@" -O0\n')
    os.chmod(cc, 0o755)
    return net, cc


def parts_told(work):
    path = os.path.join(work, "told")
    with open(path) as f:
        text = f.read()
    os.unlink(path)
    return sorted(int(n) for n in re.findall(r"_PART=(\d+)", text)), len(set(re.findall(r"_PARTS=(\d+)", text)))


def built(env):
    """Products of `build` in parts have the same bits; a failing part is reported; a signal leaves no files."""
    env.need_ingot()
    work = env.scratch("split", "built")
    net, cc = large(env, work)
    build = [env.ingot, "build", net, "--march", "avx2", "--cc", cc, "--name", "net", "--quiet", "-o"]
    os.makedirs(os.path.join(work, "tmp"), exist_ok=True)
    around = {**os.environ, "TMPDIR": os.path.join(work, "tmp"), "CC": cc}
    for product in ("net.o", "net.so"):
        must([*build, os.path.join(work, product)], product, env=around)
        parts, sizes = parts_told(work)
        if len(parts) < 2 or parts != list(range(len(parts))) or sizes != 1:
            raise Fail(f"{product}: parts {parts}")
        with open(os.path.join(work, "main.c"), "w") as f:
            f.write(MAIN)
        program = os.path.join(work, "main")
        must(["cc", "-I", work, "-o", program, os.path.join(work, "main.c"), os.path.join(work, product), f"-Wl,-rpath,{work}"], product)
        if run([program], 60).out.strip() not in (b"0", b"6"):  # 6: a CPU without vectors
            raise Fail(f"{product}: the self-test does not pass")
    outputs = []
    for engine in ("interp", "c"):
        path = os.path.join(work, engine + ".npz")
        must([env.ingot, "run", net, "--march", "native", "--engine", engine, "--seed", "3", "--quiet", "-o", path], engine, env=around)
        outputs.append(npy.load_npz_raw(path))
    if outputs[0] != outputs[1]:
        raise Fail("engine c gives other bits")
    if not parts_told(work)[0]:
        raise Fail("engine c compiles all at once")
    got = run([*build, os.path.join(work, "bad.o")], 60, env={**around, "PART1": "echo part one >&2; exit 7"})
    if got.rc != 5 or "exit status 7" not in got.text() or "part one" not in got.text() or os.path.exists(os.path.join(work, "bad.o")):
        raise Fail(f"a part that fails: exit {got.rc}: {got.text()}")
    stopped(build, work, around)
    if os.listdir(around["TMPDIR"]):
        raise Fail(f"left behind: {os.listdir(around['TMPDIR'])}")


def stopped(build, work, around):
    child = os.path.join(work, "child")
    p = subprocess.Popen([*build, os.path.join(work, "late.o")], env={**around, "PART1": f"sleep 60 & echo $! >{child}; wait"},
                         stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    end = time.monotonic() + 30
    while not (os.path.exists(child) and open(child).read().strip()) and time.monotonic() < end:
        time.sleep(0.01)
    p.send_signal(signal.SIGTERM)
    if p.wait(30) != -signal.SIGTERM or safety.alive(int(open(child).read())):
        raise Fail(f"a signal gives {p.returncode}, or a compiler goes on")


def lines(env):
    """Without a terminal, a line every 10 s names the task and its part; none with --quiet."""
    work = env.scratch("split", "lines")
    net, cc = large(env, work)
    build = [env.need_ingot(), "build", net, "--march", "avx2", "--cc", cc]
    around = {**os.environ, "PART1": "sleep 11"}
    quiet = subprocess.Popen([*build, "--quiet", "-o", os.path.join(work, "quiet.o")], env=around, stderr=subprocess.PIPE)
    said = run([*build, "-o", os.path.join(work, "net.o")], 60, env=around).text()
    if not re.search(r"^ingot: build, C compiler: part \d of \d+ \.\.\. 1\d s$", said, re.M) or "\x1b" in said:
        raise Fail(f"without a terminal: {said}")
    if quiet.communicate()[1]:
        raise Fail("progress with --quiet")


def refused(env):
    for n, why in (("0", "1 to 64"), ("65", "1 to 64"), ("x", "1 to 64")):
        got = run([env.need_ingot(), "compile", "models/digits.onnx", "--split", n], 60)
        if got.rc != 2 or why not in got.text():
            raise Fail(f"--split {n}: exit {got.rc}: {got.text()}")


def tests(env):
    return [Test("split/refused", lambda: refused(env)), Test("split/lines", lambda: lines(env), cost=1), Test("split/built", lambda: built(env), cost=6), *[Test(f"split/{n}", lambda n=n: check(env, n), cost=6) for n in CASES]]
