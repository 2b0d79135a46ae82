"""--split: one file, compiled at once or in parts that are linked, is the same program; each part without a warning."""
import os

from lib.core import Fail, Test, must, need, run

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
        kernels = [run(["nm", "--defined-only", p], 60).out.count(b"net_k") for p in parts]
        if not all(kernels[2:]):  # of so small a network part 0 has only the rest
            raise Fail(f"kernels of the file and of its parts: {kernels}")
        for objects in (parts[:1], parts[1:]):
            program = os.path.join(work, "main")
            must([cc, *([] if cc == "tcc" else ["-pthread"]), "-I", work, "-o", program, os.path.join(work, "main.c"), *objects], "linking")
            if run([program], 60).out.strip() != b"0":
                raise Fail(f"{cc}, {len(objects)} objects: the self-test does not pass")


def refused(env):
    for n, why in (("0", "1 to 64"), ("65", "1 to 64"), ("x", "1 to 64")):
        got = run([env.need_ingot(), "compile", "models/digits.onnx", "--split", n], 60)
        if got.rc != 2 or why not in got.text():
            raise Fail(f"--split {n}: exit {got.rc}: {got.text()}")


def tests(env):
    return [Test("split/refused", lambda: refused(env)), *[Test(f"split/{n}", lambda n=n: check(env, n), cost=6) for n in CASES]]
