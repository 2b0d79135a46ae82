"""Attention over a growing cache: the result of a token has the same bits in any chunks, with any number of threads, in interp
and in C.

It also agrees with arithmetic in double.
Masks, grouped heads and 16-bit caches vary.
"""
import math
import os
import random
import re

from lib import cpu, npy
from lib.core import Fail, Test, must

HEADS, MOST = 2, 9
TARGETS = ("sse2", "avx2", "avx512")
# name: query heads per key head, type of the cache, window (0: none), a mask that is not a limit, head size, tokens; from 256 keys on
# threads share segments of keys
CASES = {"grouped": (3, "f16", 0, False, 32, 140), "single": (1, "f32", 0, False, 32, 600), "window": (2, "bf16", 70, False, 32, 600),
         "masked": (5, "f32", 0, True, 32, 300), "odd": (3, "f16", 0, False, 37, 280), "tiny": (2, "f32", 0, True, 3, 20)}


def graph(group, cache, window, masked, d, tokens):
    h, g, halves = HEADS, group, cache != "f32"
    s = f"f32[{h},{g},t,past+t]"
    kept = f" window {window}" if window else ""  # then the window plus the tokens of one run are enough places
    lines = [f"%j: i64[past+t] = iota {{shape=[past+t], axis=0, to=i64}}", "%i: i64[t,1] = iota {shape=[t,1], axis=0, to=i64}",
             "%p: i64[] = dims {shape=[past], to=i64, rank=0}", "%at: i64[t,1] = add(%i, %p)", "%le: bool[t,past+t] = le(%j, %at)"]
    keep = "%le"
    for new, old, now in (("%k", "%ko", "%kn"), ("%v", "%vo", "%vn")):
        if halves:
            lines.append(f"{now}h: {cache}[{h},t,{d}] = cast({now}) {{to={cache}}}")
            now += "h"
        lines.append(f"{new}: {cache}[{h},past+t,{d}] = concat({old}, {now}) {{axis=1}}")
        lines.append(f"{new}f: f32[{h},past+t,{d}] = cast({new}) {{to=f32}}" if halves else "")
    if window:
        lines += [f"%w: i64[] = const {{{window}}}", "%lo: i64[t,1] = sub(%at, %w)", "%gt: bool[t,past+t] = gt(%j, %lo)",
                  "%both: bool[t,past+t] = and(%le, %gt)"]
        keep = "%both"
    if masked:  # every third key has a lower score
        lines += ["%three: i64[] = const {3}", "%jm: i64[past+t] = mod(%j, %three)", "%jf: f32[past+t] = cast(%jm) {to=f32}"]
    k, v = ("%kf", "%vf") if halves else ("%k", "%v")
    lines += [f'%s0: {s} = contract(%q, {k}) {{spec="hgld,hsd->hgls"}}', "%scale: f32[] = const {0.25}", f"%s1: {s} = mul(%s0, %scale)"]
    score = "%s1"
    if masked:
        lines.append(f"%s2: {s} = sub(%s1, %jf)")
        score = "%s2"
    lines += ["%low: f32[] = const {-inf}", f"%s: {s} = select({keep}, {score}, %low)", f"%m: f32[{h},{g},t,1] = reduce_max(%s) {{axes=[3], keep=1}}",
              f"%x: {s} = sub(%s, %m)", f"%e: {s} = exp(%x)", f"%sum: f32[{h},{g},t,1] = reduce_sum(%e) {{axes=[3], keep=1}}",
              f"%pr: {s} = div(%e, %sum)", f'%y: f32[{h},{g},t,{d}] = contract(%pr, {v}) {{spec="hgls,hsd->hgld"}}',
              f'return %y "y", %k next %ko{kept}, %v next %vo{kept}']
    head = (f'graph att\nsym past in 0..{tokens + 10}\nsym t in 1..{MOST}\n(%q "q": f32[{h},{g},t,{d}], %ko "ko": {cache}[{h},past,{d}], '
            f'%vo "vo": {cache}[{h},past,{d}], %kn "k": f32[{h},t,{d}], %vn "v": f32[{h},t,{d}]) {{\n')
    return head + "".join(f"  {x}\n" for x in lines if x) + "}\n"


MAIN = """#include "att.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
enum { H = HEADS, G = GROUP, D = DEPTH, N = TOKENS };
static float Q[H * G][N][D], K[H][N][D], V[H][N][D], R[4][H * G][N][D];
_Alignas(ATT_ARENA_ALIGN) static unsigned char arena[ATT_ARENA_BYTES];
static unsigned z = 1;
static float draw(void) { z = z * 1664525u + 1013904223u; return (float)((int)(z >> 20) - 2048) / 1024; }
static int part(int pos, int t, float (*to)[N][D]) {
  static float q[H * G * N * D], k[H * N * D], v[H * N * D], y[H * G * N * D];
  for (int h = 0; h < H * G; h++) memcpy(q + h * t * D, Q[h][pos], sizeof(float) * t * D);
  for (int h = 0; h < H; h++) {
    memcpy(k + h * t * D, K[h][pos], sizeof(float) * t * D);
    memcpy(v + h * t * D, V[h][pos], sizeof(float) * t * D);
  }
  int status = att_run(arena, t, q, k, v, y);
  for (int h = 0; h < H * G; h++) memcpy(to[h][pos], y + h * t * D, sizeof(float) * t * D);
  return status;
}
static double off(int h, int p) { /* the largest error of a row */
  double s[N], top = -1e30, sum = 0, r[D] = {0}, worst = 0;
  int from = WINDOW && p >= WINDOW ? p - WINDOW + 1 : 0;
  for (int j = from; j <= p; j++) {
    s[j] = 0;
    for (int d = 0; d < D; d++) s[j] += (double)Q[h][p][d] * K[h / G][j][d] * 0.25;
    if (MASKED) s[j] -= j % 3;
    if (s[j] > top) top = s[j];
  }
  for (int j = from; j <= p; j++) {
    sum += s[j] = exp(s[j] - top);
    for (int d = 0; d < D; d++) r[d] += s[j] * V[h / G][j][d];
  }
  for (int d = 0; d < D; d++) {
    double e = fabs(r[d] / sum - R[0][h][p][d]);
    if (!(e <= worst)) worst = e;
  }
  return worst;
}
int main(void) {
  const int chunks[4] = {1, 9, 4, 7};
  for (int p = 0; p < N; p++)
    for (int d = 0; d < D; d++) {
      for (int h = 0; h < H * G; h++) Q[h][p][d] = draw();
      for (int h = 0; h < H; h++) K[h][p][d] = draw(), V[h][p][d] = draw();
    }
  START;
  for (int c = 0; c < 4; c++) {
    att_reset(arena);
    for (int p = 0; p < N;) {
      int t = chunks[c] < N - p ? chunks[c] : N - p;
      if (part(p, t, R[c])) return 1;
      p += t;
    }
    if (memcmp(R[0], R[c], sizeof R[0])) return printf("chunks of %d differ\\n", chunks[c]), 0;
  }
  STOP;
  double worst = 0;
  unsigned hash = 0, word;
  for (int h = 0; h < H * G; h++)
    for (int p = 0; p < N; p++) {
      double e = off(h, p);
      if (!(e <= worst)) worst = e;
      for (int d = 0; d < D; d++) memcpy(&word, &R[0][h][p][d], 4), hash = hash * 31 + word;
    }
  printf("%s %08x\\n", worst < NEAR ? "fine" : "far off", hash);
  return 0;
}
"""
NEAR = {"f32": "1e-5", "f16": "5e-3", "bf16": "4e-2"}  # rounding of a value in the cache


def chunks(env, name, target):
    cpu.need(target)
    group, cache, window, masked, depth, tokens = CASES[name]
    work = env.scratch("attention", f"{name}-{target}")
    model = os.path.join(work, "att.ing")
    with open(model, "w") as f:
        f.write(graph(*CASES[name]))
    said = must([env.need_ingot(), "opt", model, "--march", target, "--explain"], "explain")
    if "attention" not in said:
        raise Fail("attention is not written as such")
    if window and f"state {cache}[{HEADS},{window + MOST},{depth}]" not in must([env.ingot, "opt", model, "--march", target, "--stop=lower"], "opt"):
        raise Fail("the window does not wrap around")
    main = os.path.join(work, "main.c")
    results = set()
    for threads in (1, 2):
        text = MAIN.replace("NEAR", NEAR[cache]).replace("GROUP", str(group)).replace("WINDOW", str(window)).replace("MASKED", str(int(masked)))
        text = text.replace("= HEADS", f"= {HEADS}").replace("= DEPTH", f"= {depth}").replace("= TOKENS", f"= {tokens}")
        text = text.replace("START", f"att_threads_start(arena, {threads})" if threads > 1 else "(void)0")
        text = text.replace("STOP", "att_threads_stop(arena)" if threads > 1 else "(void)0")
        with open(main, "w") as f:
            f.write(text)
        source, program = os.path.join(work, "att.c"), os.path.join(work, "prog")
        more = ["--threads", "2", "--threads-grain", "1"] if threads > 1 else []
        must([env.ingot, "compile", model, "--march", target, "--quiet", "--no-selftest", "--name", "att", "-o", source, *more], "compile")
        must(["cc", "-O1", "-w", main, source, "-lm", "-lpthread", "-o", program], "cc")
        results.add(must([program], "program"))
    if len(results) != 1 or not results.pop().startswith("fine"):
        raise Fail(f"results: {results}")
    found, fixed = [], os.path.join(work, "five.ing")
    with open(fixed, "w") as f:
        f.write(re.sub(r"\bt\b", "5", re.sub(r"sym t .*\n", "", graph(*CASES[name]))))
    for engine in ("interp", "c"):
        out = os.path.join(work, engine + ".npz")
        must([env.ingot, "run", fixed, "--march", target, "--engine", engine, "--steps", str(tokens // 7), "--seed", "3", "--quiet", "-o", out], engine)
        with open(out, "rb") as f:
            found.append(f.read())
    if found[0] != found[1]:
        raise Fail("C and interp differ in their bits")


FIXED = """graph att
(%q "q": f32[ROWS,16], %k "k": f32[KEYS,16], %v "v": f32[KEYS,32], %b "b": f32[KEYS]) {
  %s0: f32[ROWS,KEYS] = contract(%q, %k) {spec="ld,sd->ls"}
  %s: f32[ROWS,KEYS] = add(%s0, %b)
  %m: f32[ROWS,1] = reduce_max(%s) {axes=[1], keep=1}
  %x: f32[ROWS,KEYS] = sub(%s, %m)
  %e: f32[ROWS,KEYS] = exp(%x)
  %sum: f32[ROWS,1] = reduce_sum(%e) {axes=[1], keep=1}
  %pr: f32[ROWS,KEYS] = div(%e, %sum)
  %y: f32[ROWS,32] = contract(%pr, %v) {spec="ls,sd->ld"}
  return %y "y"
}
""".replace("ROWS", "113").replace("KEYS", "9491")


def fixed(env, target):
    """Known, large numbers of keys: keys are packed."""
    cpu.need(target)
    work = env.scratch("attention", f"fixed-{target}")
    model, found = os.path.join(work, "att.ing"), {}
    with open(model, "w") as f:
        f.write(FIXED)
    if "attention" not in must([env.need_ingot(), "opt", model, "--march", target, "--explain"], "explain"):
        raise Fail("attention is not written as such")
    for engine in ("interp", "c", "ref"):
        out = os.path.join(work, engine + ".npz")
        must([env.ingot, "run", model, "--march", target, "--engine", engine, "--seed", "3", "--quiet", "-o", out], engine)
        found[engine] = npy.load_npz_raw(out)["y"]
    if found["interp"] != found["c"]:
        raise Fail("C and interp differ in their bits")
    off = max(abs(a - b) for a, b in zip(npy.decode(found["c"]).data, npy.decode(found["ref"]).data))
    if not off < 2e-5:
        raise Fail(f"{off} from the reference")


def onwards(env, target):
    """A tile of rows reads keys in the order of memory: only such reads are prefetched."""
    work = env.scratch("attention", f"onwards-{target}")
    model, source = os.path.join(work, "att.ing"), os.path.join(work, "att.c")
    with open(model, "w") as f:
        f.write(graph(*CASES["grouped"]))
    must([env.need_ingot(), "compile", model, "--march", target, "--quiet", "--no-selftest", "-o", source], "compile")
    with open(source) as f:
        body = f.read().split("#else\n  float")[0]
    order = [int(at) for at in re.findall(r"int64_t key\d+ = [^,;]*?v\d+ \+ \(uint64_t\)(\d+)", body)]
    lanes = {"avx2": 8, "avx512": 16}[target]
    if order[:lanes - 1] != list(range(1, lanes)):
        raise Fail(f"keys are read in the order {order}")


LIMITED = """graph att
sym n in 1..400
(%q "q": f32[3,4], %k "k": f32[n,4], %v "v": f32[n,4], %at "at": TYPE[3,1]) {
  %s0: f32[3,n] = contract(%q, %k) {spec="ld,sd->ls"}
  %j: TYPE[n] = iota {shape=[n], axis=0, to=TYPE}
  %keep: bool[3,n] = OP(%j, %at)
  %low: f32[] = const {-inf}
  %s: f32[3,n] = select(%keep, %s0, %low)
  %m: f32[3,1] = reduce_max(%s) {axes=[1], keep=1}
  %x: f32[3,n] = sub(%s, %m)
  %e: f32[3,n] = exp(%x)
  %sum: f32[3,1] = reduce_sum(%e) {axes=[1], keep=1}
  %w: f32[3,n] = div(%e, %sum)
  %y: f32[3,4] = contract(%w, %v) {spec="ls,sd->ld"}
  return %y "y"
}
"""
# type of key positions, what each of three rows compares them with, and whether attention recognizes a limit
LIMITS = {"i64": ((3, 2**63 - 1, -2**63), True), "i32": ((299, 2**31 - 1, -2**31), True), "f32": ((2.5, 298.5, math.inf), False),
          "u8": ((3, 200, 255), False), "u64": ((3, 2**63 + 5, 2**64 - 1), False)}


def limits(env, kind):
    """Limits of every form, and masks that compare key positions but are not limits: fractions, and integers that wrap around."""
    cpu.need("sse2")
    work = env.scratch("attention", f"limits-{kind}")
    model, given, keys = os.path.join(work, "att.ing"), os.path.join(work, "given.npz"), 300
    at, is_limit = LIMITS[kind]
    draw = random.Random(5)
    arrays = {name: npy.Array("f32", (n, 4), [draw.uniform(-1, 1) for _ in range(4 * n)]) for name, n in (("q", 3), ("k", keys), ("v", keys))}
    npy.save_npz(given, {**arrays, "at": npy.Array(kind, (3, 1), list(at))})
    for op in ("lt", "le", "gt", "ge"):
        with open(model, "w") as f:
            f.write(LIMITED.replace("TYPE", kind).replace("OP", op))
        if is_limit and "attention" not in must([env.need_ingot(), "opt", model, "--march", "sse2", "--explain"], "explain"):
            raise Fail("attention is not written as such")
        found = {}
        for engine in ("ref", "interp") + ("c",) * (is_limit and op == "le"):
            out = os.path.join(work, engine + ".npz")
            must([env.need_ingot(), "run", model, "--march", "sse2", "--engine", engine, "--inputs", given, "--quiet", "-o", out], engine)
            found[engine] = npy.load_npz(out)["y"]
        for engine in found:
            reason = npy.differ(found[engine], found["ref"], 0, 1e-5)
            if reason:
                raise Fail(f"{op}, {engine}: y {reason}")


def tests(env):
    return [Test(f"attention/limits-{kind}", lambda k=kind: limits(env, k), cost=0.5) for kind in LIMITS] + [Test(f"attention/onwards-{target}", lambda t=target: onwards(env, t), cost=0.2) for target in ("avx2", "avx512")] + [Test(f"attention/fixed-{target}", lambda t=target: fixed(env, t), cost=4) for target in ("avx2", "avx512")] + [Test(f"attention/{name}-{target}", lambda n=name, t=target: chunks(env, n, t), cost=4) for name in CASES for target in TARGETS
            if target == "avx2" or name == "grouped"]
