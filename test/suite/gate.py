"""A file for vectors needs no flags: gcc and clang for x86-64 compile it without a warning, and it runs as with flags.

A compiler without these vectors warns once, unless INGOT_PORTABLE is defined.
It compiles loops that are not slower than those of `scalar`, with the bits of --march NAME-loops.
On a CPU without these vectors, the run returns a status that NAME_why explains.
"""
import os
import shutil

from lib import cpu, npy
from lib.core import ROOT, Fail, Test, explain, must, need, run, tail
from suite import multi, targets

STRICT = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wundef", "-Wshadow", "-Wmissing-prototypes", "-Werror"]
MAIN = """#include "net.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
extern void *aligned_alloc(size_t align, size_t n);
static float in[NET_INPUT0_ELEMENTS], out[NET_OUTPUT0_ELEMENTS];
int main(void) {
  void *arena = aligned_alloc(64, NET_ARENA_BYTES + 64), *test = aligned_alloc(64, NET_SELFTEST_BYTES + 64);
  int status = net_selftest(test);
  double best = 1e9;
  for (int k = 0; !status && k < 25; k++) {
    clock_t start = clock();
    for (int i = 0; i < 20; i++) status = RUN;
    double took = (double)(clock() - start);
    best = took < best ? took : best;
  }
  printf("%s %d %g %s\\n", net_target(), status, best, net_why(status));
  return 0;
}
"""


def emit(env, work, model, *options):
    env.need_ingot()
    must([env.ingot, "compile", *model, *options, "--name", "net", "--selftest", "-o", os.path.join(work, "net.c")], "compile")
    with open(os.path.join(work, "main.c"), "w") as f:
        f.write(MAIN.replace("RUN", "net_run(arena, in, out)"))


def built(work, cc, *flags, quiet=True):
    """Builds a program; returns messages of the compiler."""
    objects = []
    for name in ("net", "main"):
        objects.append(os.path.join(work, name + ".o"))
        own = flags if name == "net" else [f for f in flags if f == "-pthread"]
        got = run([cc, *own, "-I", work, "-c", "-o", objects[-1], os.path.join(work, name + ".c")], 120)
        if got.rc or got.timed_out:
            raise Fail(f"{cc} {flags}: {explain(got)}: {tail(got.text(), 6)}")
        if name == "net":
            said = got.text().strip()
    if quiet and said:
        raise Fail(f"{cc} {flags} says: {said}")
    must([cc, *[f for f in flags if f == "-pthread"], "-o", os.path.join(work, "main"), *objects], "linking")
    return said


def result(work, want, *around, status=0):
    got = run([*around, os.path.join(work, "main")], 120)
    words = got.out.decode().split(None, 3)
    if got.rc or words[0] != want or (int(words[1]) != 0) != (status != 0):
        raise Fail(f"{around}: {explain(got)}: '{got.text().strip()}', expected {want}, status {status}")
    return float(words[2]), words[3]


def flagless(env, target):
    """gcc and clang without flags: no message, vectors, and their bits; also with threads."""
    work = env.scratch("gate", target)
    for options, more in (([], []), (["--threads", "2", "--threads-grain", "1", "--weights", "text"], ["-pthread"])):
        emit(env, work, multi.DIGITS, "--march", target, *options)
        for cc in ("gcc", "clang"):
            need(cc)
            built(work, cc, *STRICT, *more)
            if cpu.can_run(target):
                result(work, target)
        if shutil.which("qemu-x86_64"):
            _, why = result(work, target, "qemu-x86_64", "-cpu", "Nehalem", status=1)
            if "CPU lacks one of" not in why or "fma" not in why:
                raise Fail(f"a CPU without {target} is told: {why}")


def programs(env):
    """A program for vectors that the CPU lacks says so, also for --help, and runs nothing; one for every CPU runs."""
    need("qemu-x86_64")
    env.need_ingot()
    net = os.path.join(env.scratch("gate", "programs"), "net")
    for cc, march, options, lacks in (("gcc", "avx512", [], "avx512f"), ("clang", "avx2", ["--threads", "2"], "fma"), ("gcc", "x86-64-v3,+avx512f", ["-O", "3"], "avx512f"),
                                      ("gcc", "multi", [], None), ("gcc", "sse2", [], None)):
        need(cc)
        must([env.ingot, "build", *multi.DIGITS, "--march", march, "--quiet", "--cc", cc, *options, "-o", net], f"build for {march}")
        for args in (["--help"], ["--seed", "3"]):
            got = run(["qemu-x86_64", "-cpu", "Nehalem", net, *args], 60)
            text = got.err.decode()
            if lacks and (got.rc != 3 or got.out or "net: this CPU lacks " not in text or lacks not in text.split() + text.replace(",", " ").split() or "--march multi" not in text):
                raise Fail(f"{cc}, {march}, {args}: {explain(got)}: {got.text()}")
            if not lacks and got.rc:
                raise Fail(f"{cc}, {march}, {args}: {explain(got)}: {got.text()}")


def arm(env):
    """A program for ARM names what the CPU lacks; one that has it runs."""
    need("qemu-aarch64")
    need("aarch64-linux-gnu-gcc")
    env.need_ingot()
    net = os.path.join(env.scratch("gate", "arm"), "net")
    for march, lacks in (("neon-dotprod", ["asimddp"]), ("neon-i8mm", ["asimddp", "i8mm"]), ("neon", [])):
        must([env.ingot, "build", *multi.DIGITS, "--march", march, "--quiet", "--cc", "aarch64-linux-gnu-gcc -static", "-o", net], f"build for {march}")
        for machine in ("cortex-a53", "max"):
            got = run(["qemu-aarch64", "-cpu", machine, net, "--seed", "3"], 60)
            old = machine != "max" and lacks
            if got.rc != (3 if old else 0) or (old and f"net: this CPU lacks {' '.join(lacks)}, " not in got.err.decode()):
                raise Fail(f"{march} on {machine}: {explain(got)}: {got.text()}")


def older(env):
    """Compilers without the feature name gfni build programs and libraries."""
    env.need_ingot()
    need("gcc")
    work = env.scratch("gate", "older")
    cc = os.path.join(work, "cc")
    with open(cc, "w") as f:
        f.write('#!/bin/sh\nfor x in "$@"; do case "$x" in *.c) grep -q "supports(.gfni.)" "$x" && exit 1 ;; esac; done\nexec gcc "$@"\n')
    os.chmod(cc, 0o700)
    for name in ("net", "net.a"):
        must([env.ingot, "build", *multi.DIGITS, "--march", "x86-64-v3,+avx512f", "--quiet", "--name", "net", "--cc", cc, "-o", os.path.join(work, name)], name)


def libraries(env):
    """A library for a newer CPU returns a status, also from its self-test and its threads; features that only flags enable
    count."""
    need("qemu-x86_64")
    env.need_ingot()
    work = env.scratch("gate", "libraries")
    with open(os.path.join(work, "main.c"), "w") as f:
        f.write(MAIN.replace("RUN", "net_run(arena, in, out)"))
    for cc, march, end, options, machine in (("gcc", "avx512", "a", [], "Nehalem"), ("clang", "avx2", "o", ["--threads", "2", "--threads-grain", "1"], "Nehalem"),
                                             ("gcc", "x86-64-v3,+avx512f", "a", ["-O", "3"], "Haswell"), ("clang", "x86-64-v3,+gfni", "o", ["-O", "2"], "Haswell"),
                                             ("gcc", "x86-64-v3,+avxvnni", "so", [], "Haswell"), ("gcc", "sse2", "a", [], None)):
        need(cc)
        made = os.path.join(work, "net." + end)
        must([env.ingot, "build", *multi.DIGITS, "--march", march, "--quiet", "--selftest", "--name", "net", "--cc", cc, *options, "-o", made], f"build for {march}")
        must([cc, "-I", work, "-o", os.path.join(work, "main"), os.path.join(work, "main.c"), made, "-pthread", "-Wl,-rpath," + work], "linking")
        target = march if "," not in march else "avx2"
        if cpu.can_run(target) and "+" not in march:
            result(work, target)
        result(work, target, "qemu-x86_64", "-cpu", machine or "Nehalem", status=1 if machine else 0)


def others(env):
    """Compilers without the vectors: one warning, or none if INGOT_PORTABLE is defined; the loops pass the self-test and have
    the bits of their target."""
    work = env.scratch("gate", "others")
    for target in ("avx2", "neon"):
        emit(env, work, multi.DIGITS, "--march", target)
        need("tcc")
        if built(work, "tcc", quiet=False).count("no vectors for") != 1:
            raise Fail(f"tcc does not say once that it has no vectors for {target}")
        result(work, target + "-loops")
        for cc, *flags in (("tcc", "-DINGOT_PORTABLE"), ("gcc", *STRICT, "-DINGOT_PORTABLE"), ("clang", *STRICT, "-DINGOT_PORTABLE", "-mavx2", "-mfma")):
            built(work, cc, *flags)
            result(work, target + "-loops")
    for cc in ("gcc", "clang"):  # for neon: a note, which a strict compiler does not treat as an error
        if "no vectors for neon" not in built(work, cc, *STRICT, quiet=False):
            raise Fail(f"{cc} for x86-64 does not say that it has no vectors for neon")
    net = os.path.join(work, "net")
    must([env.ingot, "build", *multi.DIGITS, "--march", "avx2", "--quiet", "--cc", "gcc -DINGOT_PORTABLE", "-o", net], "build")
    must([net, "--seed", "5", "--output", net + ".npz"], "run")
    for target, same in (("avx2-loops", True), ("avx2", False)):
        must([env.ingot, "run", *multi.DIGITS, "--quiet", "--seed", "5", "--march", target, "--output", net + "-interp.npz"], "run")
        if (npy.load_npz_raw(net + ".npz") == npy.load_npz_raw(net + "-interp.npz")) != same:
            raise Fail(f"loops give {'other' if same else 'the same'} bytes than --march={target}")
    got = run([env.ingot, "compile", *multi.DIGITS, "--march", "avx2-loops,sse2"], 60)
    if got.rc != 2 or "unknown target 'avx2-loops'" not in got.text():
        raise Fail(f"loops among several bodies: {explain(got)}")


def no_cliff(env):
    """Loops that replace vectors are not slower than those of a file without vectors."""
    work = env.scratch("gate", "cliff")
    model = [targets.prepare(env, "mobile21")[0]]
    took = {}
    for target, flags in (("scalar", []), ("avx2", ["-DINGOT_PORTABLE"])):
        emit(env, work, model, "--march", target)
        built(work, "gcc", "-O2", *flags)
        took[target], _ = result(work, "scalar" if target == "scalar" else "avx2-loops")
    if took["avx2"] > 1.3 * took["scalar"]:
        raise Fail(f"loops for avx2 take {took['avx2'] / took['scalar']:.1f} times as long as those of scalar")


def messages(env):
    """The target that every file states, and flags that would still make it faster."""
    env.need_ingot()
    model = [os.path.join(ROOT, "models", "digits.onnx"), "-d", "batch=1"]
    for march, name, body in (("scalar", "scalar", 'return "scalar"'), ("avx512", "avx512", 'return "avx512-loops"'),
                              ("multi", "sse2,avx2,avx512", 'return "sse2-loops"')):
        text = must([env.ingot, "compile", *model, "--march", march, "--name", "net"], "compile")
        if f'#define NET_TARGET "{name}"\n' not in text or body not in text or "const char *net_target(void);" not in text:
            raise Fail(f"--march={march} does not say what it is for")
        if march != "scalar" and ("im_fmaf" not in text or "__FMA__" in text):
            raise Fail(f"--march={march}: a function asks the flags for what it was told it may use")
    quantized = multi.quantized_net(env)
    for march, flag in (("avx512", "-mavx512vnni"), ("avx2", "-mavxvnni"), ("multi", ""), ("sse2", "")):
        got = run([env.ingot, "compile", *quantized, "--march", march], 60)
        if got.rc or (flag in got.err.decode()) != bool(flag) and flag or ("int8 kernels are faster" in got.err.decode()) != bool(flag):
            raise Fail(f"--march={march}: {got.err.decode()}")


def tests(env):
    return [*[Test(f"gate/{t}", lambda t=t: flagless(env, t), cost=8) for t in ("avx2", "avx512")],
            Test("gate/programs", lambda: programs(env), cost=6), Test("gate/arm", lambda: arm(env), cost=4), Test("gate/older", lambda: older(env), cost=3),
            Test("gate/libraries", lambda: libraries(env), cost=6), Test("gate/others", lambda: others(env), cost=6), Test("gate/cliff", lambda: no_cliff(env), cost=4),
            Test("gate/messages", lambda: messages(env), cost=3)]
