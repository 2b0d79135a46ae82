#!/usr/bin/env python3
"""The engines inside ingot beside each other on the bench networks: vm, jit and the C of gcc -O3, one thread.

    bench/inside.py [--only NAME,..] [--rounds N] [--json FILE]

All three are in this process and take turns, round by round: C and jit as libraries that `ingot build` makes (-O3, --via llvm), vm through the
Python package. Prints of each the least milliseconds of the processor, as other programs only make it worse, and how many times as long as C vm and
jit take. Unless they are left out (--no-first), also the milliseconds from the file to the first result of jit (`ingot bench`) and of ingot with gcc (its library and one run); at
the end geometric means. Networks come from bench/nets.py, which `make bench` runs; one that only vm takes is left out. Runs on build/venv/bin/python.
"""
import argparse
import glob
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

NETS = os.path.join(library.ROOT, "build", "bench", "nets")
sys.path.insert(0, os.path.join(library.ROOT, "python"))
import ingot  # noqa: E402  (of this source tree)

TURN = 2e-3  # seconds of a turn, at least


def shapes(feeds):
    """Open dimensions are those of the inputs."""
    return [w for k, v in feeds.items() if v.ndim for w in ("--shapes", f"{k}:{'x'.join(map(str, v.shape))}")]


def runs(net, folder, feeds):
    """By engine: what runs it once; and the seconds until the library of the C is there and has run."""
    model, name = os.path.join(NETS, net + ".onnx"), re.sub(r"\W", "_", net)
    made, start = {}, time.perf_counter()
    for engine, words in (("c", ["-O3"]), ("jit", ["--via", "llvm"])):
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


def first_of_jit(net):
    words = [os.path.join(library.ROOT, "build", "ingot"), "bench", os.path.join(NETS, net + ".onnx"), "--inputs", os.path.join(NETS, net + ".npz"),
             "--engine", "jit", "--seconds", "0.01", "--json", "--quiet"]
    got = subprocess.run(words, capture_output=True, text=True)
    r = json.loads(got.stdout)[0] if got.returncode == 0 else None
    return r["first_ms"] + r["build_ms"] if r else None


def row(net, o):
    feeds = dict(np.load(os.path.join(NETS, net + ".npz")))
    with tempfile.TemporaryDirectory() as folder:
        made, first = runs(net, folder, feeds)
        best, count = dict.fromkeys(made, math.inf), {}
        for _ in range(o.rounds):
            for e, run in made.items():
                start = time.thread_time()
                for _ in range(count.get(e, 1)):
                    run()
                best[e] = min(best[e], (time.thread_time() - start) / count.get(e, 1))
                count.setdefault(e, max(1, int(TURN / best[e])))
    best = {e: 1e3 * t for e, t in best.items()}
    return {"net": net, **best, "first_jit": None if o.no_first else first_of_jit(net), "first_c": None if o.no_first else 1e3 * first}


def mean(values):
    values = [v for v in values if v]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--only", default="")
    p.add_argument("--rounds", type=int, default=40)
    p.add_argument("--no-first", action="store_true")
    p.add_argument("--json")
    o = p.parse_args()
    nets = o.only.split(",") if o.only else sorted(os.path.basename(x)[:-5] for x in glob.glob(os.path.join(NETS, "*.onnx")))
    over = lambda r, a, b: r[a] / r[b] if r.get(a) and r.get(b) else None
    text = lambda x, form: format(x, form) if x else "-"
    rows = []
    print(f"{'network':18} {'vm':>9} {'jit':>9} {'c':>9} {'vm/c':>6} {'jit/c':>6} {'first: jit':>10} {'c':>7}")
    for net in nets:
        try:
            r = row(net, o)
        except subprocess.CalledProcessError:
            print(f"{net:18} has no library", flush=True)
            continue
        rows.append(r)
        print(f"{net:18} {text(r.get('vm'), '9.3f'):>9} {text(r.get('jit'), '9.3f'):>9} {text(r.get('c'), '9.3f'):>9} "
              f"{text(over(r, 'vm', 'c'), '6.2f'):>6} {text(over(r, 'jit', 'c'), '6.2f'):>6} "
              f"{text(r['first_jit'], '10.0f'):>10} {text(r['first_c'], '7.0f'):>7}", flush=True)
    print(f"geometric means: vm/c {mean([over(r, 'vm', 'c') for r in rows]):.2f}, "
          f"jit/c {mean([over(r, 'jit', 'c') for r in rows]):.3f}, first result jit/c {mean([over(r, 'first_jit', 'first_c') for r in rows]):.2f}")
    if o.json:
        with open(o.json, "w") as f:
            json.dump(rows, f, indent=1)


if __name__ == "__main__":
    main()
