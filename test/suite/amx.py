"""--march amx: what it generates, with the intrinsics of AMX in plain C (test/amx/shim.h) and as loops, gives the bits of the interpreter.
Signed and unsigned bytes, sizes that fill no tile, strides, residuals, threads."""
import os

from lib import cpu
from lib.core import ROOT, Test, must, need, want

MAIN = """#include "net.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  unsigned char *p = malloc(NET_SELFTEST_BYTES + 64);
  int status = net_selftest(p + (64 - (uintptr_t)p % 64));
  printf("%s %s\\n", net_target(), net_why(status));
  return status;
}
"""
SHIM = ["-include", os.path.join(ROOT, "test", "amx", "shim.h"), "-march=x86-64-v4", "-mavx512vnni", "-mamx-tile", "-mamx-int8"]
NETS = ("product", "signed", "narrow", "residual", "wide")


def prepare(env):
    folder = os.path.join(env.build, "amx")
    env.need_ingot()
    env.generated(folder, ["make/mkamx.py", "requirements.txt"], lambda: env.script("mkamx.py", folder))
    return folder


def built(env, net, compiler, flags, says):
    """The self-test compares with the bits of the program, in which products are loops."""
    need(compiler)
    folder = env.scratch("amx", f"{net}-{compiler}-{says}")
    model = os.path.join(prepare(env), net + ".onnx")
    threads = ["--threads", "3"] if net == "wide" else []
    must([env.ingot, "compile", model, "--march", "amx", "--selftest", "--quiet", "--name", "net", *threads, "-o", os.path.join(folder, "net.c")], "compile")
    with open(os.path.join(folder, "main.c"), "w") as f:
        f.write(MAIN)
    with open(os.path.join(folder, "net.c")) as f:
        want("_tile_dpbusd" in f.read(), "no product uses matrix registers")
    program = os.path.join(folder, "main")
    must([compiler, "-O1", "-Wall", "-Wextra", "-Werror", *flags, "-o", program, os.path.join(folder, "main.c"), os.path.join(folder, "net.c"), "-lpthread"], compiler)
    want(must([program], "self-test").strip() == f"{says} done", "the self-test failed")


def shim(env, net, compiler):
    cpu.need("avx512vnni")
    built(env, net, compiler, SHIM, "amx")


def same(env, net):
    """The interpreter, which knows fragments, the bytecode, and the program without matrix registers give the same bits."""
    folder, model = env.scratch("amx", net), os.path.join(prepare(env), net + ".onnx")
    text = os.path.join(folder, "net.ing")
    for threads in ("1", "4"):
        must([env.ingot, "opt", model, "--march", "amx", "--threads", threads, "--check", "-o", text], "opt --threads " + threads)
    with open(text) as f:
        want("mma(" in f.read(), "no product uses matrix registers")
    got = []
    for name, what in (("interp", [text, "--engine", "interp"]), ("vm", [text, "--engine", "vm"]), ("avx512", [model, "--march", "avx512", "--engine", "vm"])):
        out = os.path.join(folder, name + ".npz")
        must([env.ingot, "run", *what, "--seed", "1", "--quiet", "-o", out], name)
        with open(out, "rb") as f:
            got.append(f.read())
    want(got[0] == got[1] == got[2], f"{net}: engines differ")


def refused(env):
    """Without matrix registers the program says so instead of ending with SIGILL."""
    need("gcc")
    if cpu.can_run("amx"):
        return
    folder, model = env.scratch("amx", "refused"), os.path.join(prepare(env), "product.onnx")
    must([env.ingot, "compile", model, "--march", "amx", "--selftest", "--quiet", "--name", "net", "-o", os.path.join(folder, "net.c")], "compile")
    with open(os.path.join(folder, "main.c"), "w") as f:
        f.write(MAIN.replace("return status", "return !status"))
    program = os.path.join(folder, "main")
    must(["gcc", "-o", program, os.path.join(folder, "main.c"), os.path.join(folder, "net.c")], "gcc")
    want("this CPU lacks one of avx512vnni" in must([program], "self-test"), "another answer")


def tests(env):
    return [*(Test(f"amx/same-{n}", lambda n=n: same(env, n), cost=6) for n in NETS),
            *(Test(f"amx/shim-{n}", lambda n=n: shim(env, n, "gcc"), cost=4) for n in NETS),
            Test("amx/shim-clang", lambda: shim(env, "residual", "clang"), cost=4),
            *(Test(f"amx/loops-{n}", lambda n=n: built(env, n, "gcc", ["-DINGOT_PORTABLE"], "amx-loops"), cost=4) for n in ("signed", "residual")),
            Test("amx/refused", lambda: refused(env), cost=2)]
