"""Sizes that a run computes: trip counts, numbers of elements found. Value ranges give their bounds, and memory is sized by the
bounds.

Here the bounds are wrong on purpose: every engine refuses a run that exceeds them, and says where.
C compiled with a sanitizer shows that nothing was written before.
"""
import os
from lib import cfile, cpu, npy
from lib.core import SANITIZER, Fail, Test, explain, run
from suite.cli import Cli, want
from suite.promises import need

LOOP = """graph sym u data in 0..2 (%n "n": i64[], %x "x": f32[40]) {
  %t: bool[] = const {true}
  %v: f32[40], %s: f32[u,40] = loop(%n, %t, %x) {scans = 1} (%i: i64[], %c: bool[], %w: f32[40]) {
    %d: f32[40] = add(%w, %x)
    return %c, %d, %d
  } sym(u)
  %q: f32[40] = reduce_sum(%s) {axes = [0], keep = 0}
  %size: i64[1] = dims {shape = [u], to = i64, rank = 1}
  return %v "v", %q "q", %size "size"
}
"""
FOUND = """graph sym u data in 0..2 (%n "n": i64[], %x "x": f32[40]) {
  %k: i64[40] = iota {shape = [40], axis = 0, to = i64}
  %c: bool[40] = lt(%k, %n)
  %i: i64[1,u] = nonzero(%c) sym(u)
  %j: i64[u] = reshape(%i) {shape = [u]}
  %b: f32[u] = gather(%x, %j) {axis = 0}
  return %b "b"
}
"""
BRANCH = """graph sym u data in 1..2 (%n "n": i64[], %x "x": f32[40]) {
  %two: i64[] = const {2}
  %p: bool[] = gt(%n, %two)
  %r: f32[u] = if(%p) {
    %s: f32[30] = slice(%x) {start = [0], size = [30], step = [1]}
    return %s
  } else {
    %r2: f32[2] = slice(%x) {start = [1], size = [2], step = [1]}
    return %r2
  } sym(u)
  %q: f32[u] = add(%r, %r)
  return %q "q"
}
"""
PROG = """prog p
sym u data in 1..2
buf n: in i64[]
buf x: in f32[40]
buf y: out f32[u]
set u = n[]
for i in 0..u {
  y[i] = x[i]
}
"""
# The extent n - 1 belongs only to the operand of a concat; to a result; to a slice.
EMPTY = """graph sym n in 0..9 (%x "x": f32[n]) {
  %z: f32[] = const {1}
  %c: f32[3] = const {7, 8, 9}
  %b: f32[n-1] = broadcast(%z) {shape = [n-1]}
  %y: f32[n+2] = concat(%b, %c) {axis = 0}
  return %y "y"
}
"""
TEXTS = {"loop": LOOP, "found": FOUND, "branch": BRANCH, "prog": PROG}
SAYS = "the size u, which the run computes, is outside of its bounds"


def save(env, name, folder):
    path = os.path.join(env.scratch("sizes", folder), name + ".ing")
    with open(path, "w") as f:
        f.write(TEXTS[name])
    return path


def engines(env):
    """Within the bounds the run succeeds; beyond them the data are refused."""
    c = Cli(env, "sizes engines")
    for name in TEXTS:
        path = save(env, name, "engines")
        for engine in ("interp", "watch") if name == "prog" else ("ref", "interp", "watch", "c"):
            c.run("run", path, "--engine", engine, "--input", "n=2", "--quiet")
            c.run("run", path, "--engine", engine, "--input", "n=5", "--quiet", code=4, text=SAYS)


def compiled(env, target):
    """Status and text of a run beyond the bounds, of C under a sanitizer."""
    need("gcc")
    cpu.need(target)
    folder = env.scratch("sizes", target)
    lines = ["#include <stdint.h>", "#include <stdio.h>", "#include <stdlib.h>", cfile.LOOK]
    for name in TEXTS:
        at = os.path.join(folder, name)
        got = run([env.ingot, "compile", save(env, name, target), "--march", target, "--name", name, "-o", at + ".c", "--quiet"], 60)
        if got.rc:
            raise Fail(f"{name}: {explain(got)}: {got.text()}")
        with open(at + ".c") as f:
            lines += [f'#include "{name}.h"', cfile.caller(name, f.read(), before="in0[0] = trips;",
                                                          end=f'printf("{name} %s\\n", {name}_why(status));').replace("(void)", "(int trips)", 1)]
    calls = [f"  check_{name}({n});" for n in (2, 5) for name in TEXTS]
    with open(os.path.join(folder, "main.c"), "w") as f:
        f.write("\n".join([*lines, "int main(void) {", *calls, "  return 0;", "}"]))
    program = os.path.join(folder, "main")
    cfile.cc(["gcc", "-O1", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", *cpu.flags(target), "-o", program,
              *[os.path.join(folder, n + ".c") for n in ("main", *TEXTS)]], "compiling")
    got = run([program], 60, env=SANITIZER)
    said = got.out.decode().splitlines()
    want(not got.rc and len(said) == 2 * len(TEXTS), f"{explain(got)}: {got.text()}")
    for line in said[:len(TEXTS)]:
        want(line.endswith(" done"), line)
    for line in said[len(TEXTS):]:
        want(SAYS in line, line)


def empty(env):
    """A negative extent is refused by every engine before memory is accessed."""
    c = Cli(env, "sizes empty")
    with open(c.path("empty.ing"), "w") as f:
        f.write(EMPTY)
    for n in (0, 1, 4):
        npy.save(c.path("x.npy"), npy.Array("f32", (n,), [1.0] * n))
        for engine in ("ref", "interp", "watch", "c"):
            flags = ["run", "empty.ing", "--engine", engine, "--input", "x=@x.npy", "--quiet"]
            if n:
                want(f"f32[{n + 2}]" in c.run(*flags).out.decode(), f"{engine}: {n} elements")
            else:
                c.run(*flags, code=4, text="n-1")


def tests(env):
    out = [Test("sizes/engines", lambda: engines(env), cost=6), Test("sizes/empty", lambda: empty(env), cost=4)]
    return out + [Test(f"sizes/{t}", lambda t=t: compiled(env, t), cost=4) for t in ("scalar", "avx2")]
