#!/usr/bin/env python3
"""Compares the engines of ingot on the bench networks: vm, jit and the C of gcc -O3, one thread.

    bench/inside.py [--only NAME,.. | --all] [--rounds N] [--json FILE]

All three are in this process and take turns, round by round: C and jit as libraries that `ingot build` makes (-O3, --backend llvm), vm through the
Python package. A turn begins with an untimed call that fills the caches. Prints the minimum CPU milliseconds of each, vm and jit
divided by C, and the tree walker divided by vm for one run (networks of up to 400 million multiply-adds). Without --no-first, also the
milliseconds from the file to the first result of jit (`ingot bench`) and of ingot with gcc (its library and one run). Ends with
geometric means and the goals. bench/nets.py makes the networks; those that only vm runs are left out. The list NETS takes about five
minutes on a quiet machine with two cores. Runs on build/venv/bin/python.
"""
import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time

import numpy as np

import library
import nets
import timer
from timer import verdict

NETS = ("resnet18 squeezenet mobilenetv2 mobilenetv3-large efficientnet-b0 shufflenetv2 minilm bert-tiny gpt-tiny lstm gru mobilenetv2-int8 resnet18-int8 "
        "magika silero-v6 ppocr-cls autoencoder kws-dscnn").split()
sys.path.insert(0, os.path.join(library.ROOT, "python"))
import ingot  # noqa: E402  (of this source tree)

TURN = 2e-3  # minimum seconds of a turn
WALKED = 4e8  # maximum multiply-adds of a network that the tree walker runs


def shapes(feeds):
    """Open dimensions, taken from the inputs."""
    return [w for k, v in feeds.items() if v.ndim for w in ("--shapes", f"{k}:{'x'.join(map(str, v.shape))}")]


def runs(net, model, folder, feeds):
    """({engine: function that runs it once}, seconds until the library of the C is built and has run)."""
    name = re.sub(r"\W", "_", net)
    made, start = {}, time.perf_counter()
    for engine, words in (("c", ["-O3"]), ("jit", ["--backend", "llvm"])):
        lib = library.Library(folder, model, f"{name}_{engine}", ["--march", "native", *words, *shapes(feeds)])
        outs = lib.outputs()
        args = lib.words([*(np.ascontiguousarray(feeds[n]) for n in lib.names("INPUT")), *outs])
        made[engine] = lambda lib=lib, args=args, keep=(outs, feeds): lib.function(*args)
        if made[engine]():
            sys.exit(f"inside: {net}: {engine} does not run")
        if engine == "c":
            first = time.perf_counter() - start
    vm = ingot.compile(model, engine="vm", march="native", shapes={k: v.shape for k, v in feeds.items() if v.ndim})
    made["vm"] = lambda: vm.run(feeds)
    made["vm"]()
    return made, first


def first_of_jit(model):
    words = [os.path.join(library.ROOT, "build", "ingot"), "bench", model, "--inputs", model[:-5] + ".npz", "--engine", "jit", "--seconds", "0.01", "--json", "--quiet"]
    got = subprocess.run(words, capture_output=True, text=True)
    r = json.loads(got.stdout)[0] if got.returncode == 0 else None
    return r["first_ms"] + r["build_ms"] if r else None


def walk(model, feeds):
    """Seconds of one run of the tree-walking interpreter; None: the network is too large."""
    with open(model[:-5] + ".json") as f:
        if json.load(f)["macs"] > WALKED:
            return None
    walker = ingot.compile(model, engine="interp", march="native", shapes={k: v.shape for k, v in feeds.items() if v.ndim})
    start = time.thread_time()
    walker.run(feeds)
    return time.thread_time() - start


def row(net, o):
    model = nets.make(net)
    feeds = dict(np.load(model[:-5] + ".npz"))
    with tempfile.TemporaryDirectory() as folder:
        made, first = runs(net, model, folder, feeds)
        best = timer.minima(made, o.rounds, TURN)
    best["interp"] = walk(model, feeds)
    best = {e: t and 1e3 * t for e, t in best.items()}
    return {"net": net, **best, "first_jit": None if o.no_first else first_of_jit(model), "first_c": None if o.no_first else 1e3 * first}


def over(r, a, b):
    return r[a] / r[b] if r.get(a) and r.get(b) else None


def every(rows, a, b):
    """All ratios a / b whose terms exist."""
    return [x for x in (over(r, a, b) for r in rows) if x]


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def judge(rows):
    jit, first = every(rows, "jit", "c"), every(rows, "first_jit", "first_c")
    verdict("interp / vm, geometric mean", mean(every(rows, "interp", "vm")), 4)
    verdict("vm / C, MobileNetV2", next((over(r, "vm", "c") for r in rows if r["net"] == "mobilenetv2"), None), 6, least=False)
    verdict("jit / C, geometric mean", mean(jit), 1.05, least=False, form=".3f")
    verdict("jit / C, the worst network", max(jit, default=None), 1.15, least=False, form=".3f")
    verdict("first result of jit / that of ingot and gcc -O3, geometric mean", mean(first), 0.5, least=False)
    verdict("first result, the worst network", max(first, default=None), 0.5, least=False)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--only", default="")
    p.add_argument("--all", action="store_true")
    p.add_argument("--rounds", type=int, default=40)
    p.add_argument("--no-first", action="store_true")
    p.add_argument("--json")
    o = p.parse_args()
    names, start = o.only.split(",") if o.only else nets.ORDER if o.all else NETS, time.perf_counter()
    text = lambda x, form: format(x, form) if x else "-"
    rows = []
    print(f"{'network':18} {'vm':>9} {'jit':>9} {'c':>9} {'vm/c':>6} {'jit/c':>6} {'walk/vm':>7} {'first: jit':>10} {'c':>7}")
    for net in names:
        try:
            r = row(net, o)
        except (subprocess.CalledProcessError, OSError, SystemExit) as e:
            print(f"{net:18} is left out: {e}", flush=True)
            continue
        rows.append(r)
        print(f"{net:18} {text(r.get('vm'), '9.3f'):>9} {text(r.get('jit'), '9.3f'):>9} {text(r.get('c'), '9.3f'):>9} "
              f"{text(over(r, 'vm', 'c'), '6.2f'):>6} {text(over(r, 'jit', 'c'), '6.2f'):>6} {text(over(r, 'interp', 'vm'), '7.1f'):>7} "
              f"{text(r['first_jit'], '10.0f'):>10} {text(r['first_c'], '7.0f'):>7}", flush=True)
    slow = every(rows, "vm", "c")
    print(f"{len(rows)} networks in {time.perf_counter() - start:.0f} s; vm / C: {mean(slow) or 0:.2f} in geometric mean, {max(slow, default=0):.2f} at worst")
    judge(rows)
    if o.json:
        with open(o.json, "w") as f:
            json.dump(rows, f, indent=1)


if __name__ == "__main__":
    main()
