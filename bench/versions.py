#!/usr/bin/env python3
"""Compares the speed of two versions of ingot on the bench networks.

    bench/versions.py OLD [NEW] [--march avx2,native] [--only NAME,..] [--threads 1] [--rounds N] [--block MS]

OLD and NEW are ingot binaries, NEW by default build/ingot. Both build every network with gcc -O3. Where the machine code is the same, byte by
byte, there is nothing to measure; the others take turns as in bench/peers.py. Prints OLD / NEW of the medians (above 1: NEW is faster), their
geometric mean over all networks, and the CPU seconds of ingot itself. Exit code 1 if a network is below 0.97 or the mean below 0.99.
"""
import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile

import peers
import timer

LEAST, LEAST_MEAN = 0.97, 0.99


def code_of(lib):
    """The instructions of all objects of a library, in order, without names and addresses."""
    with tempfile.TemporaryDirectory() as d:
        subprocess.run(["ar", "x", os.path.abspath(lib)], cwd=d, check=True)
        text = b""
        for o in sorted(os.listdir(d)):
            flat = os.path.join(d, o + ".text")
            subprocess.run(["objcopy", "-O", "binary", "--only-section=.text*", os.path.join(d, o), flat], check=True)
            with open(flat, "rb") as f:
                text += f.read()
        return text


def seconds_of(ingot, model, march):
    """CPU seconds of `ingot compile`."""
    with tempfile.TemporaryDirectory() as d:
        return timer.child([ingot, "compile", model, "--march", march, "--quiet", "-o", os.path.join(d, "m.c")])[0]


def ratio_of(model, versions, march, threads, rounds, ms):
    """OLD / NEW of the medians, and the method of comparison."""
    import numpy as np
    with np.load(model[:-5] + ".npz") as z:
        feed = {k: z[k] for k in z.files}
    built = [peers.compile_ingot(model, "gcc", threads, ["--march", march], v, tag)[0] for tag, v in versions.items()]
    if code_of(built[0]) == code_of(built[1]):
        return 1.0, "same code"
    children = []
    try:
        for tag, v in versions.items():
            children.append(peers.start_ingot("ingot-gcc", model, feed, threads, ["--march", march], v, tag))
            children[-1].name = tag
        refused = {}
        peers.take_turns(children, rounds, ms, refused)
        if refused:
            raise peers.Refused(str(refused))
        old, new = (statistics.median(c.times) for c in children)
    finally:
        for c in children:
            c.close()
    return old / new, f"{old / 1e3:.4g} -> {new / 1e3:.4g} ms"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("old")
    p.add_argument("new", nargs="?", default=peers.INGOT)
    p.add_argument("--march", default="avx2,native")
    p.add_argument("--only")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--rounds", type=int, default=6)
    p.add_argument("--block", type=float, default=150)
    a = p.parse_args()
    peers.enter_venv()
    import nets
    versions = {"old": os.path.abspath(a.old), "new": os.path.abspath(a.new)}
    bad = False
    for march in a.march.split(","):
        ratios, spent = [], [0.0, 0.0]
        for name in peers.chosen(a.only, p.error):
            try:
                model = nets.make(name)
                r, how = ratio_of(model, versions, march, a.threads, a.rounds, a.block)
            except (FileNotFoundError, peers.Refused) as e:
                print(f"{march} {name}: {e}", flush=True)
                continue
            spent = [s + seconds_of(v, model, march) for s, v in zip(spent, versions.values())]
            print(f"{march} {name}: {r:.3f}  ({how})", flush=True)
            ratios.append(r)
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{march}: {len(ratios)} networks, geometric mean {mean:.3f}, least {min(ratios):.3f}; ingot took {spent[0]:.1f} s and {spent[1]:.1f} s")
        bad |= mean < LEAST_MEAN or min(ratios) < LEAST
    sys.exit(bad)


if __name__ == "__main__":
    main()
