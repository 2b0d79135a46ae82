"""Time and memory grow with the model, not with its square: each family of test/lib/families.py with n nodes and with 4n.

Measured are seconds of processor time of `ingot compile`, less what a tiny model takes, and its peak of memory. Four times as
many nodes may cost five times as much. What other programs do to caches disturbs the time, never for the better: each size
counts with the least of several runs. Where the smaller model fits into a cache that the larger one does not fit into, the next
step, from 4n to 16n nodes, decides.
"""
import os
import sys

from lib import families
from lib.core import ROOT, Fail, Test, run, tail

LIMIT = 120
MOST = 5.0
TRIES = 3
MEASURE = os.path.join(ROOT, "test", "lib", "measure.py")
BOTH = ("scalar", "avx2")
VECTORS = ("avx2",)
THREADS = ("avx2 --threads 4",)
# nodes of the smaller model: family, targets
CASES = {
    100: {"lstm": BOTH, "pools": BOTH, "resize": BOTH, "transposed": BOTH},
    200: {"conv_relu": BOTH, "depthwise": BOTH + THREADS, "softmax": BOTH, "residual": VECTORS, "ifs": VECTORS,
          "matmul_softmax": BOTH, "turned": VECTORS + THREADS, "pointwise": VECTORS, "layer_norm": BOTH},
    400: {"joined_convs": BOTH, "wide_ifs": VECTORS, "concat_chain": VECTORS, "attention": VECTORS, "ifs": ("scalar",), "turned": ("scalar",)},
    1000: {"gemm": BOTH, "batch_norm": BOTH, "reduce_mean": VECTORS, "top_k": ("scalar",), "nonzero": ("scalar",), "quantised": VECTORS,
           "cells": VECTORS, "gather": VECTORS, "one_split": ("scalar",), "many_outputs": ("scalar",), "loops": ("scalar",)},
    2000: {"embeddings": ("scalar",), "fan_out": ("scalar",), "many_inputs": ("scalar",), "one_sum": ("scalar",), "slice_pad": ("scalar",),
           "elementwise": ("scalar",), "diamonds": ("scalar",), "transposes": ("scalar",), "cum_sum": ("scalar",)},
    5000: {"shapes": ("scalar",), "dead": ("scalar",), "constants": ("scalar",), "equal": ("scalar",)},
}


class Sizes:
    """What the model with n nodes takes, the least of all runs so far."""

    def __init__(self, env, family, target):
        self.env, self.family, self.options = env, family, ["--march", *target.split()]
        self.best = {}

    def measure(self, n):
        folder = self.env.scratch("growth")
        path = os.path.join(folder, f"{self.family}-{n}.onnx")
        if not os.path.exists(path):
            families.write(self.family, n, f"{path}.{os.getpid()}.{id(self)}")
            os.replace(f"{path}.{os.getpid()}.{id(self)}", path)
        got = run([sys.executable, "-I", "-S", MEASURE, self.env.ingot, "compile", path, "--quiet", *self.options], LIMIT)
        words = got.out.split()
        if len(words) != 3 or words[0] != b"0":
            raise Fail(f"compile {self.family} with {n} nodes: {words}: {tail(got.text())}")
        now = float(words[1]), int(words[2])
        self.best[n] = tuple(map(min, now, self.best.get(n, now)))
        return self.best[n]


def ratios(sizes, n, tries):
    """How many times the time and the memory of n nodes 4n nodes take, and a line that says so."""
    for _ in range(tries):
        t0, _ = sizes.measure(8)
        t1, m1 = sizes.measure(n)
        t4, m4 = sizes.measure(4 * n)
        time, memory = (t4 - t0) / max(t1 - t0, 0.002), m4 / m1
        if time <= MOST or memory > MOST:
            break
    return time, memory, (f"{n} nodes take {t1:.3f} s and {m1 >> 20} MB, {4 * n} nodes {t4:.3f} s and {m4 >> 20} MB: "
                          f"{time:.1f} and {memory:.1f} times as much")


def grows(env, family, n, target):
    env.need_ingot()
    sizes = Sizes(env, family, target)
    time, memory, said = ratios(sizes, n, TRIES)
    if time > MOST >= memory:  # a cache that has become too small costs once, a square costs again
        time, memory, again = ratios(sizes, 4 * n, 2)
        said += "; " + again
    if time > MOST or memory > MOST:
        raise Fail(f"{family}, {target}: {said}")


def tests(env):
    return [Test(f"growth/{family}/{target.replace(' --', '-').replace(' ', '')}",
                 lambda family=family, n=n, target=target: grows(env, family, n, target), cost=1)
            for n, row in CASES.items() for family, targets in row.items() for target in targets]
