#!/usr/bin/env python3
"""One expression a million times, on every engine that runs in this process.

    bench/expression.py [SECONDS]

x = 2, y = 3, z = 4, in both readings: ((x + y) * z - 1) / 2 + x * y, which is 15.5, and ((x + y) * z - 1) / (2 + x * y), which is 2.375. A thousand
elements of f64 each hold the operands, so that none of it can be done once for all, and are run a thousand times; the sum of the results is a
result of the model, so that none can be left out, and is compared. One thread; of the runs the fastest counts. The tree walker is
engine interp: the processor time of a process that runs a million at once. The last column says how many
times as fast an engine is.
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
INPUTS = ["--input", "x=2", "--input", "y=3", "--input", "z=4", "--quiet"]


def ingot(*args):
    return subprocess.run([INGOT, *args, *INPUTS], capture_output=True, text=True)


def write(path, n, last):
    with open(path, "w") as f:
        f.write(GRAPH.format(n=n, last=last.format(n=n)))


def tree_ms(path):
    """Milliseconds of the tree walker."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    if ingot("run", path, "--engine", "interp").returncode:
        raise SystemExit("the tree walker fails")
    return (resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before) * 1e3


def main():
    seconds = sys.argv[1] if len(sys.argv) > 1 else "1"
    path = os.path.join(ROOT, "build", "expression.ing")
    print(f"{'value':>8} {'engine':>8} {'ms':>10} {'ns each':>9} {'times':>8}")
    for value, last in LAST.items():
        write(path, COUNT * RUNS, last)
        tree = tree_ms(path)
        print(f"{value:>8} {'walker':>8} {tree:10.3f} {tree * 1e6 / COUNT / RUNS:9.3f} {1:8.1f}")
        write(path, COUNT, last)
        for engine in ("vm", "jit", "c"):
            run = ingot("run", path, "--engine", engine)
            if run.returncode:
                print(f"{value:>8} {engine:>8} not here: {run.stderr.strip().splitlines()[-1]}")
                continue
            total = float(re.search(r"^\s+(\S+)$", run.stdout, re.M)[1])
            if total != float(value) * COUNT:
                raise SystemExit(f"{engine}: the sum is {total}, expected {float(value) * COUNT}")
            got = json.loads(ingot("bench", path, "--engine", engine, "--seconds", seconds, "--json").stdout)[0]
            ms = got["min_ms"] * RUNS
            print(f"{value:>8} {engine:>8} {ms:10.3f} {ms * 1e6 / COUNT / RUNS:9.3f} {tree / ms:8.1f}")


if __name__ == "__main__":
    main()
