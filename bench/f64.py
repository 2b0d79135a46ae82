#!/usr/bin/env python3
"""Compares f64 kernels, written as ordinary graphs, with NumPy: vector_add, vector_mul, fma, dot of 10,000 and products of square matrices.

    bench/f64.py [--march native] [--threads N] [--rounds N] [--json FILE]

Each graph becomes a shared library (`ingot build`, gcc -O3) that this process loads; the library and NumPy take turns. Every round has
its own inputs, so that no result is computed twice, and outputs are added up. A turn begins with an untimed call that fills the caches.
Prints the minimum time of each (CPU time with one thread), GB/s read and written or GFLOP/s, the ratio, and the fraction of the
machine's limit, which is measured between the turns. The limit of products is a loop of FMAs in registers of about the same duration.
The limit of the others is the bandwidth of a loop that reads and writes as many arrays of the same size, the best of several vector
widths and unroll factors. Ends with the goals. Takes about a minute. Runs on build/venv/bin/python.
"""
import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np  # noqa: E402  (reads the number of threads when it is loaded)
import onnx  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402

import library  # noqa: E402
import timer  # noqa: E402
from timer import verdict  # noqa: E402

N = 10000
VEC = [N]
# name: nodes, inputs, output, what NumPy does, bytes moved, operations
CASES = {
    "vector_add": ([("Add", "ab", "y")], {"a": VEC, "b": VEC}, VEC, lambda a, b, y: np.add(a, b, out=y), 24 * N, 0),
    "vector_mul": ([("Mul", "ab", "y")], {"a": VEC, "b": VEC}, VEC, lambda a, b, y: np.multiply(a, b, out=y), 24 * N, 0),
    "vector_fma": ([("Mul", "ab", "t"), ("Add", "tc", "y")], {"a": VEC, "b": VEC, "c": VEC}, VEC,
                   lambda a, b, c, y: np.add(np.multiply(a, b, out=y), c, out=y), 32 * N, 0),
    "dot": ([("MatMul", "ab", "y")], {"a": VEC, "b": VEC}, [], lambda a, b, y: y.fill(np.dot(a, b)), 16 * N, 0),
}
for n in (100, 512, 1024):
    CASES[f"matmul_{n}"] = ([("MatMul", "ab", "y")], {"a": [n, n], "b": [n, n]}, [n, n], lambda a, b, y: np.matmul(a, b, out=y), 0, 2 * n**3)
PEAK_ROUNDS = 4e8  # approximate rate of the loop below, per second
PEAK = r"""
#include <time.h>
#if defined __AVX512F__
#define W 64
#elif defined __AVX__
#define W 32
#else
#define W 16
#endif
typedef double Vec __attribute__((vector_size(W)));
/* GFLOP/s of multiply-adds in registers, of n rounds of 12. */
double peak(long n) {
  Vec s[12], x = {0}, y = {0};
  struct timespec a, b;
  for (int i = 0; i < 12; i++) s[i] = x + i;
  x += 0.999; y += 1e-9;
  __asm__ volatile("" : "+v"(x), "+v"(y));
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
  for (long k = 0; k < n; k++) {
#pragma GCC unroll 12
    for (int i = 0; i < 12; i++) s[i] = s[i] * x + y;
  }
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
  for (int i = 1; i < 12; i++) s[0] += s[i];
  __asm__ volatile("" : : "v"(s[0]));
  return 12.0 * 2 * (W / 8) * n / ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec));
}
"""
# read_K_W_U: reads K arrays; move_K_W_U: also writes one. Vectors of W bytes, unrolled U times.
BAND = r"""
typedef long long Any;
#define LOOP(W, U, K, name, each)                                                                   \
  double name##_##K##_##W##_##U(const char *a, const char *b, const char *c, char *y, long n) {     \
    typedef Any Vec __attribute__((vector_size(W), aligned(8), may_alias));                         \
    Vec s[U];                                                                                       \
    for (int i = 0; i < U; i++) s[i] = (Vec){0};                                                    \
    for (long k = 0; k + W * U <= n; k += W * U) {                                                  \
      _Pragma("GCC unroll 8") for (int i = 0; i < U; i++) {                                         \
        const long at = k + i * W;                                                                  \
        Vec x = *(const Vec *)(a + at);                                                             \
        if (K > 1) x ^= *(const Vec *)(b + at);                                                     \
        if (K > 2) x ^= *(const Vec *)(c + at);                                                     \
        each;                                                                                       \
      }                                                                                             \
    }                                                                                               \
    for (int i = 1; i < U; i++) s[0] ^= s[i];                                                       \
    __asm__ volatile("" : : "m"(s[0]), "m"(*y) : "memory");                                         \
    return 0;                                                                                       \
  }
#define BOTH(W, U)                                                                                  \
  LOOP(W, U, 2, read, s[i] ^= x)                                                                    \
  LOOP(W, U, 2, move, *(Vec *)(y + at) = x)                                                         \
  LOOP(W, U, 3, move, *(Vec *)(y + at) = x)
#define ALL(W) BOTH(W, 1) BOTH(W, 2) BOTH(W, 4) BOTH(W, 8)
ALL(16) ALL(32)
#if defined __AVX512F__
ALL(64)
#endif
"""
KINDS = {"vector_add": "move_2", "vector_mul": "move_2", "vector_fma": "move_3", "dot": "read_2"}


def build(folder, name, march, threads):
    """A graph as a library."""
    nodes, inputs, shape, _, _, _ = CASES[name]
    value = lambda n, s: helper.make_tensor_value_info(n, TensorProto.DOUBLE, s)
    graph = helper.make_graph([helper.make_node(op, list(i), [o]) for op, i, o in nodes], name, [value(*x) for x in inputs.items()],
                              [value("y", shape)])
    model = os.path.join(folder, name + ".onnx")
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model)
    return library.Library(folder, model, name, ["--march", march, "-O3", *(["--threads", str(threads)] if threads > 1 else [])])


def build_peak(folder):
    source, lib = os.path.join(folder, "peak.c"), os.path.join(folder, "libpeak.so")
    with open(source, "w") as f:
        f.write(PEAK)
    subprocess.run(["gcc", "-O3", "-march=native", "-ffp-contract=fast", "-shared", "-fPIC", source, "-o", lib], check=True)
    f = ctypes.CDLL(lib).peak
    f.argtypes, f.restype = [ctypes.c_long], ctypes.c_double
    return f


def build_band(folder):
    """Memory loops by name: they read, or read and write."""
    source, lib = os.path.join(folder, "band.c"), os.path.join(folder, "libband.so")
    with open(source, "w") as f:
        f.write(BAND)
    subprocess.run(["gcc", "-O3", "-march=native", "-shared", "-fPIC", source, "-o", lib], check=True)
    made = ctypes.CDLL(lib)
    names = [f"{k}_{w}_{u}" for k in sorted(set(KINDS.values())) for w in (16, 32, 64) for u in (1, 2, 4, 8)]
    return {n: getattr(made, n) for n in names if hasattr(made, n)}


def bandwidth(band, name, feed, ours, count, clock, best):
    """Minimum seconds of a loop of that kind over these arrays."""
    words = [ctypes.c_void_p(a.ctypes.data) for a in (*feed, *[feed[0]] * (3 - len(feed)), ours)] + [ctypes.c_long(feed[0].nbytes)]
    for kind, loop in band.items():
        if not kind.startswith(KINDS[name] + "_"):
            continue
        start = clock()
        for _ in range(count):
            loop(*words)
        best = min(best, (clock() - start) / count)
    return best


def measure(folder, name, o, peak, band):
    clock = time.thread_time if o.threads == 1 else time.perf_counter
    _, inputs, shape, numpy, moved, flops = CASES[name]
    made = build(folder, name, o.march, o.threads)
    run, rng = made.function, np.random.default_rng(1)
    feed = [rng.random(s) for s in inputs.values()]
    ours, theirs = np.zeros(shape), np.zeros(shape)
    words = made.words([*feed, ours])
    count = max(1, int(3e-3 / (moved / 6e10 + flops / 4e10)))
    top, limit = 0.0, 1e9
    spare = np.zeros(max(ours.size, 1))

    def begin():
        feed[0].flat[0] = rng.random()

    def end(best):
        nonlocal top, limit
        if not np.allclose(ours, theirs, rtol=1e-12):
            sys.exit(f"f64: {name}: results differ")
        top = max(top, peak(int(best["ingot"] * count * PEAK_ROUNDS)) * o.threads) if flops else 0
        if not flops and o.threads == 1:
            limit = bandwidth(band, name, feed, spare, max(1, count // 8), clock, limit)

    best = timer.minima({"ingot": lambda: run(*words), "numpy": lambda: numpy(*feed, theirs)}, o.rounds, count=count, clock=clock, begin=begin, end=end)
    rate = (flops or moved) / best["ingot"] / 1e9
    if limit < 1:
        top = moved / limit / 1e9
    return {"case": name, "ingot_us": best["ingot"] * 1e6, "numpy_us": best["numpy"] * 1e6, "ratio": best["numpy"] / best["ingot"],
            "rate": rate, "unit": "GFLOP/s" if flops else "GB/s", "peak": top,
            "percent_of_peak": 100 * rate / top if top else None}


def judge(rows):
    for r in rows:
        product = r["unit"] == "GFLOP/s"
        if product or r["case"] in ("vector_add", "dot"):
            verdict(f"{r['case']}, percent of the {'peak of fma' if product else 'bandwidth'}", r["percent_of_peak"], 85 if product else 90, form=".1f")
        if product:
            verdict(f"{r['case']}, times as fast as NumPy", r["ratio"], 1)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--march", default="native")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--rounds", type=int, default=40)
    p.add_argument("--json")
    o = p.parse_args()
    rows = []
    print(f"{'kernel':12} {'ingot us':>10} {'numpy us':>10} {'ratio':>6} {'rate':>8} {'':8} {'allowed':>8} {'of it':>6}")
    with tempfile.TemporaryDirectory() as folder:
        peak, band = build_peak(folder), build_band(folder)
        for name in CASES:
            r = measure(folder, name, o, peak, band)
            rows.append(r)
            part = f"{r['peak']:8.1f} {r['percent_of_peak']:5.0f}%" if r["percent_of_peak"] else ""
            print(f"{name:12} {r['ingot_us']:10.2f} {r['numpy_us']:10.2f} {r['ratio']:6.2f} {r['rate']:8.1f} {r['unit']:8} {part}", flush=True)
    judge(rows)
    if o.json:
        with open(o.json, "w") as f:
            json.dump(rows, f, indent=1)


if __name__ == "__main__":
    main()
