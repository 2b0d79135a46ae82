#!/usr/bin/env python3
"""One expression a million times, on every engine that runs in this process.

    bench/expression.py [SECONDS]

x = 2, y = 3, z = 4, in both readings: ((x + y) * z - 1) / 2 + x * y, which is 15.5, and ((x + y) * z - 1) / (2 + x * y), which is 2.375. A thousand
elements of f64 each hold the operands, so that none of it can be done once for all, and are run a thousand times; the sum of the results is a
result of the model, so that none can be left out, and is compared. One thread; of the runs the fastest counts. The tree walker is
engine interp: the processor time of a process that runs a million at once. The last column says how many
times as fast an engine is. Once more, one at a time: a loop of scalars, which carries the operands along so that no turn can use
what another has computed.
"""
import json
import os
import re
import resource
import subprocess
import sys

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
TURNS = """graph (%x0 "x": f64[], %y0 "y": f64[], %z0 "z": f64[]) {{
  %n: i64[] = const {{{n}}}
  %t: bool[] = const {{true}}
  %one: f64[] = const {{1}}
  %two: f64[] = const {{2}}
  %zero: f64[] = const {{0}}
  %s: f64[], %x1: f64[], %y1: f64[], %z1: f64[] = loop(%n, %t, %zero, %x0, %y0, %z0) {{scans = 0}} (%i: i64[], %c: bool[], %w: f64[], %x: f64[], %y: f64[], %z: f64[]) {{
  %a: f64[] = add(%x, %y)
  %b: f64[] = mul(%a, %z)
  %d: f64[] = sub(%b, %one)
{last}  %v: f64[] = add(%w, %r)
  return %t, %v, %x, %y, %z
  }}
  return %s "sum"
}}
"""
INPUTS = ["--input", "x=2", "--input", "y=3", "--input", "z=4", "--quiet"]


def ingot(*args):
    return subprocess.run([INGOT, *args, *INPUTS], capture_output=True, text=True)


def write(path, graph, n, last):
    with open(path, "w") as f:
        f.write(graph.format(n=n, last=last.format(n=n)))


def tree_ms(path):
    """Milliseconds of the tree walker."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    if ingot("run", path, "--engine", "interp").returncode:
        raise SystemExit("the tree walker fails")
    return (resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before) * 1e3


def show(what, engine, ms, tree):
    print(f"{what:>16} {engine:>8} {ms:10.3f} {ms * 1e6 / COUNT / RUNS:9.3f} {tree / ms:8.1f}", flush=True)


def measure(path, what, value, count, runs, tree, seconds):
    """Every engine on a graph that computes the value count times, of which so many runs make a million."""
    show(what, "walker", tree, tree)
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


def main():
    seconds = sys.argv[1] if len(sys.argv) > 1 else "1"
    path = os.path.join(ROOT, "build", "expression.ing")
    print(f"{'value':>16} {'engine':>8} {'ms':>10} {'ns each':>9} {'times':>8}")
    for value, last in LAST.items():
        write(path, GRAPH, COUNT * RUNS, last)
        tree = tree_ms(path)
        write(path, GRAPH, COUNT, last)
        measure(path, value, value, COUNT, RUNS, tree, seconds)
        write(path, TURNS, COUNT * RUNS, ONE[value])
        tree = tree_ms(path)
        write(path, TURNS, COUNT, ONE[value])
        measure(path, value + ", a loop", value, COUNT, RUNS, tree, seconds)


if __name__ == "__main__":
    main()
