#!/usr/bin/env python3
"""Matrix products with block-quantized weights: GB/s of weights for one row of x, 1e9 multiply-adds/s for many rows.

    bench/blocks.py [--march avx2,avx512] [--threads 1,2] [--kinds Q4_1,Q8_0] [--shapes 576x1536,2048x2048] [--rows 1,64] [--mb 128]

A shape is OUTxIN. With one row, several different matrices of --mb MB in total are multiplied in turn, so that the weights come from
memory; with --mb 1 they stay in the caches. With many rows there is one matrix. Bytes are those of the file format. A second column has
the read bandwidth (64 MB in four streams) measured in the same minute. Every figure is the minimum over its runs. Needs only ingot and a
C compiler."""
import argparse
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INGOT = os.environ.get("INGOT", os.path.join(ROOT, "build", "ingot"))
# elements, bytes, where halves lie
KINDS = {"Q4_0": (32, 18, (0,)), "Q4_1": (32, 20, (0, 2)), "Q5_0": (32, 22, (0,)), "Q5_1": (32, 24, (0, 2)), "Q8_0": (32, 34, (0,)),
         "Q2_K": (256, 84, (80, 82)), "Q3_K": (256, 110, (108,)), "Q4_K": (256, 144, (0, 2)), "Q5_K": (256, 176, (0, 2)),
         "Q6_K": (256, 210, (208,)), "IQ4_NL": (32, 18, (0,)), "IQ4_XS": (256, 136, (0,)), "TQ2_0": (256, 66, (64,))}
READ = r"""
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
typedef uint64_t V __attribute__((vector_size(32), aligned(8)));
enum { MB = 64 };
static char *at;
static int threads;
static uint64_t sink[64];
static void *work(void *arg) {
  size_t id = (size_t)arg, n = ((size_t)MB << 20) / threads, q = n / 4;
  const char *p = at + id * n;
  V a = {0}, b = a, c = a, d = a;
  for (size_t i = 0; i < q; i += 64) {
    __builtin_prefetch(p + i + 1024); __builtin_prefetch(p + q + i + 1024);
    __builtin_prefetch(p + 2 * q + i + 1024); __builtin_prefetch(p + 3 * q + i + 1024);
    a ^= *(const V *)(p + i) ^ *(const V *)(p + i + 32);
    b ^= *(const V *)(p + q + i) ^ *(const V *)(p + q + i + 32);
    c ^= *(const V *)(p + 2 * q + i) ^ *(const V *)(p + 2 * q + i + 32);
    d ^= *(const V *)(p + 3 * q + i) ^ *(const V *)(p + 3 * q + i + 32);
  }
  a ^= b ^ c ^ d;
  sink[id] = a[0] ^ a[1] ^ a[2] ^ a[3];
  return 0;
}
int main(int argc, char **argv) {
  double best = 0;
  threads = argc > 1 ? atoi(argv[1]) : 1;
  at = malloc((size_t)MB << 20);
  memset(at, 1, (size_t)MB << 20);
  for (int k = 0; k < 100; k++) {
    struct timespec s, e;
    pthread_t t[64];
    clock_gettime(CLOCK_MONOTONIC, &s);
    for (long i = 1; i < threads; i++) pthread_create(&t[i], 0, work, (void *)i);
    work(0);
    for (long i = 1; i < threads; i++) pthread_join(t[i], 0);
    clock_gettime(CLOCK_MONOTONIC, &e);
    double gb = MB * 1048576.0 / ((e.tv_sec - s.tv_sec) * 1e9 + (e.tv_nsec - s.tv_nsec));
    if (gb > best) best = gb;
  }
  printf("%.2f\n", best);
  return sink[0] == 42;
}
"""


def some(rng, kind, blocks):
    """Random blocks; a megabyte of them is enough to repeat."""
    _, size, halves = KINDS[kind]
    n = min(blocks, 4099)
    data = bytearray(rng.randbytes(n * size))
    for at in range(0, len(data), size):
        for half in halves:
            data[at + half:at + half + 2] = struct.pack("<e", rng.gauss(0, 0.02))
    return (bytes(data) * (blocks // n + 1))[:blocks * size]


def write(folder, kind, out, length, rows, mb):
    """Text of a graph with products of one x; (path, bytes of all weights)"""
    rng = random.Random(0)
    elems, size, _ = KINDS[kind]
    each = out * length // elems * size
    count = max(1, round(mb * 1e6 / each))
    path = os.path.join(folder, "blocks.ing")
    lines, results = [], []
    with open(path + ".bin", "wb") as side:
        for k in range(count):
            lines += [f"  %w{k}: u8[{out},{length // elems},{size}] = const @weights({side.tell()}, {each})",
                      f"  %f{k}: f32[{out},{length}] = dequantize(%w{k}) {{kind=\"{kind}\"}}",
                      f"  %y{k}: f32[{rows},{out}] = contract(%x, %f{k}) {{spec=\"tk,rk->tr\"}}"]
            results.append(f'%y{k} "y{k}"')
            side.write(some(rng, kind, out * length // elems))
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(["graph m", f'(%x "x": f32[{rows},{length}]) {{', *lines, f"  return {', '.join(results)}", "}", ""]))
    return path, each * count, out * length * count


def seconds(path, march, threads, more):
    cmd = [INGOT, "bench", path, "--engine", "c", "--json", "--quiet", "--march", march, "--threads", str(threads), "--seconds", "1", *more]
    got = subprocess.run(cmd, capture_output=True, text=True)
    if got.returncode:
        sys.exit(f"{' '.join(cmd)}: {got.stderr}")
    return json.loads(got.stdout)[0]["min_ms"] / 1000


def main():
    ap = argparse.ArgumentParser()
    for name, value in (("march", "avx2,avx512"), ("threads", "1"), ("kinds", "Q4_1,Q4_0,Q8_0,Q4_K,Q6_K"), ("shapes", "576x1536,1536x576,2048x2048,8192x2048"),
                        ("rows", "1,64"), ("mb", "128")):
        ap.add_argument("--" + name, default=value)
    ap.add_argument("--precise", action="store_true")
    o = ap.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        read = os.path.join(folder, "read")
        with open(read + ".c", "w", encoding="utf-8") as f:
            f.write(READ)
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-march=native", "-o", read, read + ".c", "-lpthread"], check=True)
        print(f"{'kind':8} {'shape':>11} {'rows':>4} {'march':8} {'thr':>3} {'ms':>9} {'GB/s':>7} {'of read':>7} {'G MAC/s':>8}")
        for kind in o.kinds.split(","):
            for shape in o.shapes.split(","):
                out, length = map(int, shape.split("x"))
                if length % KINDS[kind][0]:
                    continue
                for rows in map(int, o.rows.split(",")):
                    path, size, macs = write(folder, kind, out, length, rows, float(o.mb) if rows == 1 else 0.1)
                    for march in o.march.split(","):
                        for threads in o.threads.split(","):
                            took = seconds(path, march, threads, ["--precise"] if o.precise else [])
                            bandwidth = float(subprocess.run([read, threads], capture_output=True, text=True, check=True).stdout)
                            gb = size / took / 1e9
                            print(f"{kind:8} {shape:>11} {rows:4} {march:8} {threads:>3} {took * 1e3:9.3f} {gb:7.2f} {gb / bandwidth * 100:6.0f}% "
                                  f"{macs * rows / took / 1e9:8.1f}", flush=True)


main()
