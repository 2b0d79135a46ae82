#!/usr/bin/env python3
"""The engines inside ingot beside each other on the bench networks: vm, jit and the C of gcc -O3, one thread.

    bench/inside.py [--only NAME,..] [--seconds S] [--rounds N] [--json FILE]

Engines take turns, round by round, each in a process of its own (`ingot bench NET --engine E --json`); of each the least time of a run counts,
as other programs only make it worse. Prints milliseconds, how many times as long as C vm and jit take, and
the milliseconds from the file to the first result of jit and of ingot with gcc; at the end geometric means. Networks come from bench/nets.py, which
`make bench` runs.
"""
import argparse
import glob
import json
import math
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NETS = os.path.join(ROOT, "build", "bench", "nets")
ENGINES = ("vm", "jit", "c")


def measure(net, engine, seconds):
    words = [os.path.join(ROOT, "build", "ingot"), "bench", os.path.join(NETS, net + ".onnx"), "--inputs", os.path.join(NETS, net + ".npz"),
             "--engine", engine, "--seconds", str(seconds), "-O3", "--json", "--quiet"]
    got = subprocess.run(words, capture_output=True, text=True)
    return json.loads(got.stdout)[0] if got.returncode == 0 else None


def row(net, o):
    best, first = {}, {}
    for _ in range(o.rounds):
        for e in ENGINES:
            r = measure(net, e, o.seconds)
            if r:
                best[e] = min(best.get(e, 1e9), r["min_ms"])
                first[e] = min(first.get(e, 1e9), r["first_ms"] + r["build_ms"])
    return {"net": net, **best, "first_jit": first.get("jit"), "first_c": first.get("c")}


def mean(values):
    values = [v for v in values if v]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--only", default="")
    p.add_argument("--seconds", type=float, default=0.5)
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--json")
    o = p.parse_args()
    nets = o.only.split(",") if o.only else sorted(os.path.basename(x)[:-5] for x in glob.glob(os.path.join(NETS, "*.onnx")))
    over = lambda r, a, b: r[a] / r[b] if r.get(a) and r.get(b) else None
    text = lambda x, form: format(x, form) if x else "-"
    rows = []
    print(f"{'network':18} {'vm':>9} {'jit':>9} {'c':>9} {'vm/c':>6} {'jit/c':>6} {'first: jit':>10} {'c':>7}")
    for net in nets:
        r = row(net, o)
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
