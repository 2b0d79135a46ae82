"""Time and memory grow linearly with the model: each family of test/lib/families.py with n nodes and with 4n.

The test measures CPU seconds and peak memory of `ingot compile` and of other verbs and options, minus those of a tiny model.
Four times as many nodes may cost five times as much.
Other programs only slow a run down, so each size counts with its minimum of several runs.
If only the smaller model fits into a cache, the next step, from 4n to 16n nodes, decides.
"""
import os
import sys

from lib import families, programs
from lib.core import ROOT, Fail, Test, run, tail

LIMIT = 120
MOST = 5.0
TRIES = 8  # runs of a size that exceeds the limit
SECONDS, BYTES = 0.002, 8 << 20  # differences that are ignored: memory grows in blocks that double
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
    1000: {"gemm": BOTH, "batch_norm": BOTH, "reduce_mean": VECTORS, "top_k": ("scalar",), "nonzero": ("scalar",), "quantized": VECTORS,
           "cells": VECTORS, "gather": VECTORS, "one_split": ("scalar",), "many_outputs": ("scalar",), "loops": ("scalar",)},
    2000: {"embeddings": ("scalar",), "fan_out": ("scalar",), "many_inputs": ("scalar",), "one_sum": ("scalar",), "slice_pad": ("scalar",),
           "elementwise": ("scalar",), "diamonds": ("scalar",), "transposes": ("scalar",), "cum_sum": ("scalar",)},
    5000: {"shapes": ("scalar",), "dead": ("scalar",), "constants": ("scalar",), "equal": ("scalar",)},
}
# the same for other verbs and options: name: command, family: nodes
OTHERS = {
    "multi": ("compile --march multi", {"gemm": 1000, "softmax": 200, "joined_convs": 200}),
    "weights": ("compile --march avx2 --weights file -o FILE", {"gemm": 2000, "joined_convs": 400}),
    "ram": ("compile --optimize-for ram", {"conv_relu": 400, "residual": 400, "gemm": 1000}),
    "threads": ("compile --march avx2 --threads 2 --threads-grain 1", {"conv_relu": 200, "joined_convs": 400}),
    "split": ("compile --march avx2 --split 4", {"conv_relu": 200, "gemm": 2000}),
    "train": ("compile --march avx2 --train loss=mse,optimizer=sgd -o FILE", {"conv_relu": 40, "gemm": 100}),
    "inspect": ("inspect", {"gemm": 2000, "ifs": 1000, "joined_convs": 1000}),
    "report": ("inspect --html FILE", {"gemm": 2000, "joined_convs": 1000}),
    "run": ("run", {"conv_relu": 400, "softmax": 1000}),
    "run-avx2": ("run --march avx2", {"gemm": 1000, "joined_convs": 400}),
    "verify": ("verify --engine interp", {"gemm": 1000, "ifs": 1000}),
}

# programs of test/lib/programs.py: command: families, and their size in the smaller program
PROGRAMS = {"check": (programs.FAMILIES, 2000), "build -o FILE": (("functions", "assignments", "choices", "loops", "structs", "circle"), 1000), "run": (("derivative", "arms"), 2000),
            "opt --stop=none -o FILE": (tuple(programs.TEXTS), 2000)}


class Sizes:
    """Time and memory of the model with n nodes, the minima of all runs so far."""

    def __init__(self, env, family, command):
        self.env, self.family, self.command = env, family, command.split()
        text = command in PROGRAMS and (family in programs.FAMILIES or family in programs.TEXTS)
        self.make, self.end = (programs, "ing" if family in programs.TEXTS else "ch") if text else (families, "onnx")
        self.best = {}

    def measure(self, n):
        folder = self.env.scratch("growth")
        path = os.path.join(folder, f"{self.family}-{n}.{self.end}")
        if not os.path.exists(path):
            self.make.write(self.family, n, f"{path}.{os.getpid()}.{id(self)}")
            os.replace(f"{path}.{os.getpid()}.{id(self)}", path)
        verb, *options = [path + ".c" if word == "FILE" else word for word in self.command]
        got = run([sys.executable, "-I", "-S", MEASURE, self.env.ingot, verb, path, "--quiet", *options], LIMIT)
        words = got.out.split()
        if len(words) != 3 or words[0] != b"0":
            raise Fail(f"{verb} {self.family} with {n} nodes: {words}: {tail(got.text())}")
        now = float(words[1]), int(words[2])
        self.best[n] = tuple(map(min, now, self.best.get(n, now)))
        return self.best[n]


def ratios(sizes, n, tries):
    """Ratios of time and memory of 4n nodes to n nodes, and a line with them."""
    for _ in range(tries):
        t0, m0 = sizes.measure(8)
        t1, m1 = sizes.measure(n)
        t4, m4 = sizes.measure(4 * n)
        time, memory = (t4 - t0) / max(t1 - t0, SECONDS), (m4 - m0) / max(m1 - m0, BYTES)
        if time <= MOST or memory > MOST:
            break
    return time, memory, (f"{n} nodes take {t1:.3f} s and {m1 >> 20} MB, {4 * n} nodes {t4:.3f} s and {m4 >> 20} MB: "
                          f"{time:.1f} and {memory:.1f} times as much")


def grows(env, family, n, command):
    env.need_ingot()
    sizes = Sizes(env, family, command)
    time, memory, said = ratios(sizes, n, TRIES)
    if time > MOST or memory > MOST:  # a cache that becomes too small costs once, quadratic growth costs again
        time, memory, again = ratios(sizes, 4 * n, TRIES)
        said += "; " + again
    if time > MOST or memory > MOST:
        raise Fail(f"{family}, {command}: {said}")


def tests(env):
    cases = [(f"{family}/{target.replace(' --', '-').replace(' ', '')}", family, n, f"compile --march {target}")
             for n, row in CASES.items() for family, targets in row.items() for target in targets]
    cases += [(f"{family}/{name}", family, n, command) for name, (command, row) in OTHERS.items() for family, n in row.items()]
    cases += [(f"language/{command.split()[0]}/{family}", family, n, command) for command, (row, n) in PROGRAMS.items() for family in row]
    return [Test(f"growth/{name}", lambda family=family, n=n, command=command: grows(env, family, n, command), cost=1)
            for name, family, n, command in cases]
