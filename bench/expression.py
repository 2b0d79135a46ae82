#!/usr/bin/env python3
"""Evaluates one expression a million times on every engine that runs in this process.

    bench/expression.py [SECONDS]

x = 2, y = 3, z = 4, in both readings: ((x + y) * z - 1) / 2 + x * y, which is 15.5, and ((x + y) * z - 1) / (2 + x * y), which is 2.375. A thousand
elements of f64 each hold the operands, so that nothing can be hoisted, and the model runs a thousand times. The sum of the results is a
result of the model, so that no evaluation can be dropped; it is compared. One thread; the minimum over the runs counts. The tree
walker is engine interp: minimum CPU time of three processes that evaluate a million at once. The last column is the speedup. A second
table evaluates one at a time: a loop of scalars carries the operands and adds an input, 0, to x in every iteration, so that no
iteration can reuse a result of another. Takes half a minute and ends with the goals.
"""
import json
import os
import re
import subprocess
import sys

import timer
from timer import verdict

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INGOT = os.environ.get("INGOT", os.path.join(ROOT, "build", "ingot"))
COUNT, RUNS = 1000, 1000
LAST = {"15.5": "  %q: f64[{n}] = div(%d, %two)\n  %p: f64[{n}] = mul(%x, %y)\n  %r: f64[{n}] = add(%q, %p)\n",
        "2.375": "  %p: f64[{n}] = mul(%x, %y)\n  %q: f64[{n}] = add(%two, %p)\n  %r: f64[{n}] = div(%d, %q)\n"}
GRAPH = """graph (%x "x": f64[{n}], %y "y": f64[{n}], %z "z": f64[{n}]) {{
  %one: f64[] = const {{1}}
  %two: f64[] = const {{2}}
  %a: f64[{n}] = add(%x, %y)
  %b: f64[{n}] = mul(%a, %z)
  %d: f64[{n}] = sub(%b, %one)
{last}  %s: f64[] = reduce_sum(%r) {{axes = [0], keep = 0}}
  return %s "sum"
}}
"""
ONE = {"15.5": LAST["15.5"].replace("[{n}]", "[]"), "2.375": LAST["2.375"].replace("[{n}]", "[]")}
TURNS = """graph (%x0 "x": f64[], %y0 "y": f64[], %z0 "z": f64[], %e "e": f64[]) {{
  %count: i64[] = const {{{n}}}
  %t: bool[] = const {{true}}
  %one: f64[] = const {{1}}
  %two: f64[] = const {{2}}
  %zero: f64[] = const {{0}}
  %s: f64[], %x1: f64[], %y1: f64[], %z1: f64[] = loop(%count, %t, %zero, %x0, %y0, %z0) {{scans = 0}} (%i: i64[], %c: bool[], %w: f64[], %x: f64[], %y: f64[], %z: f64[]) {{
  %a: f64[] = add(%x, %y)
  %b: f64[] = mul(%a, %z)
  %d: f64[] = sub(%b, %one)
{last}  %v: f64[] = add(%w, %r)
  %n: f64[] = add(%x, %e)
  return %t, %v, %n, %y, %z
  }}
  return %s "sum"
}}
"""
INPUTS = ["--input", "x=2", "--input", "y=3", "--input", "z=4", "--quiet"]
AIMS = {"vm": 10, "jit": 50}  # minimum speed-up over the tree walker


def ingot(verb, path, *args):
    still = ["--input", "e=0"] if "loop" in os.path.basename(path) else []
    return subprocess.run([INGOT, verb, path, *args, *INPUTS, *still], capture_output=True, text=True)


def write(path, graph, n, last):
    with open(path, "w") as f:
        f.write(graph.format(n=n, last=last.format(n=n)))


def tree_ms(path):
    """Milliseconds of the tree-walking interpreter."""
    return min(timer.child([INGOT, "run", path, "--engine", "interp", *INPUTS])[0] for _ in range(3)) * 1e3


def show(what, engine, ms, tree):
    print(f"{what:>16} {engine:>8} {ms:10.3f} {ms * 1e6 / COUNT / RUNS:9.3f} {tree / ms:8.1f}", flush=True)


def measure(path, what, value, count, runs, tree, seconds):
    """Speed-up over the tree walker, by engine, on a graph that computes the value `count` times; the runs add up to a million."""
    show(what, "walker", tree, tree)
    times = {}
    for engine in ("vm", "jit", "c"):
        run = ingot("run", path, "--engine", engine)
        if run.returncode:
            print(f"{what:>16} {engine:>8} not here: {run.stderr.strip().splitlines()[-1]}")
            continue
        total = float(re.search(r"^\s+(\S+)$", run.stdout, re.M)[1])
        if total != float(value) * count:
            raise SystemExit(f"{engine}: the sum is {total}, expected {float(value) * count}")
        got = json.loads(ingot("bench", path, "--engine", engine, "--seconds", seconds, "--json").stdout)[0]
        show(what, engine, got["min_ms"] * runs, tree)
        times[engine] = tree / (got["min_ms"] * runs)
    return times


def main():
    seconds = sys.argv[1] if len(sys.argv) > 1 else "1"
    times = {}
    print(f"{'value':>16} {'engine':>8} {'ms':>10} {'ns each':>9} {'times':>8}")
    for value in LAST:
        for graph, last, kind in ((GRAPH, LAST[value], ""), (TURNS, ONE[value], ", a loop")):
            path = os.path.join(ROOT, "build", "loop.ing" if kind else "expression.ing")
            write(path, graph, COUNT * RUNS, last)
            tree = tree_ms(path)
            write(path, graph, COUNT, last)
            times[value + kind] = measure(path, value + kind, value, COUNT, RUNS, tree, seconds)
    for engine, aim in AIMS.items():
        for what, got in times.items():
            verdict(f"{what}: {engine}, times the walker", got.get(engine), aim, form=".1f")


if __name__ == "__main__":
    main()
