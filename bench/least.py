#!/usr/bin/env python3
"""Compares ingot with ONNX Runtime: minimum CPU time of a run in microseconds, in turn in one process on one thread.

    build/bench-venv/bin/python bench/least.py MODEL.onnx.. [--seconds 2] [--ingot PATH,..] [--cc gcc,clang] [--march avx2]

Meant for busy machines: CPU time excludes the time of other processes, and the minimum of many runs is disturbed least.
Inputs are in MODEL.npz, as bench/micro.py and bench/nets.py write them. ONNX Runtime is listed twice: with its defaults, and with exact sums of
int8 products (session.x64quantprecision). Several --ingot compare versions. The columns after the times have the largest error of
each result.
"""
import argparse
import ctypes
import os
import re
import subprocess
import tempfile

import numpy as np
import onnxruntime as ort

import peers
import timer


def by_ort(model, feed, exact):
    o = ort.SessionOptions()
    o.intra_op_num_threads = o.inter_op_num_threads = 1
    o.log_severity_level = 4
    if exact:
        o.add_session_config_entry("session.x64quantprecision", "1")
    s = ort.InferenceSession(model, o, providers=["CPUExecutionProvider"])
    bound = s.io_binding()
    for k, v in feed.items():
        bound.bind_cpu_input(k, v)
    for v in s.get_outputs():
        bound.bind_output(v.name, "cpu")
    return lambda: s.run_with_iobinding(bound), bound.copy_outputs_to_cpu


def memory(size):
    """Page-aligned memory of n bytes."""
    raw = np.zeros(size + 4096, np.uint8)
    return raw[-raw.ctypes.data % 4096:][:size]


def by_ingot(model, feed, ingot, cc, march, folder):
    base = tempfile.mkdtemp(dir=folder)
    subprocess.run([ingot, "build", model, "-o", base + "/net.so", "--name", "net", "--quiet", "--no-selftest", "-O3", "--march", march,
                    "--cc", cc], check=True)
    d = peers.defines(base + "/net.h")
    arrays = {"INPUT": [], "OUTPUT": []}
    for side, made in arrays.items():
        for i in range(int(d[side + "S"])):
            shape = [int(x) for x in re.findall(r"\d+", d.get(f"{side}{i}_SHAPE", ""))]
            kind = np.dtype(peers.DTYPES[d[f"{side}{i}_TYPE"].strip('"')])
            made.append(memory(int(np.prod(shape)) * kind.itemsize).view(kind).reshape(shape))
            if side == "INPUT":
                made[-1][...] = feed[d[f"INPUT{i}_NAME"].strip('"')]
    held = [memory(int(d["ARENA_BYTES"]) + 64), *arrays["INPUT"], *arrays["OUTPUT"]]
    args = [ctypes.c_void_p(a.ctypes.data) for a in held]
    f = ctypes.CDLL(base + "/net.so").net_run

    def run(held=held):
        if f(*args):
            raise RuntimeError("the model refused to run")
    return run, lambda: arrays["OUTPUT"]


def measure(model, a, folder):
    with np.load(model[:-5] + ".npz") as z:
        feed = {k: z[k] for k in z.files}
    who = {"ort": by_ort(model, feed, False), "ort-exact": by_ort(model, feed, True)}
    for path in a.ingot.split(","):
        for cc in a.cc.split(","):
            who[f"{os.path.basename(path)}-{cc}"] = by_ingot(model, feed, path, cc, a.march, folder)
    runs = {k: run for k, (run, _) in who.items()}
    once = sum(timer.minima(runs, 1).values())
    least = timer.minima(runs, max(3, int(a.seconds * len(who) / (2 * once))), count=1)
    print(f"{os.path.basename(model)[:-5]:32}" + "  ".join(f"{k} {v * 1e6:.1f}" for k, v in least.items()), flush=True)
    exact = who["ort-exact"][1]()
    for k, (run, out) in who.items():
        run()
        far = max(float(np.abs(np.asarray(x, np.float64) - np.asarray(y, np.float64)).max()) for x, y in zip(out(), exact))
        print(f"    {k}: {far:.3g} from exact")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("models", nargs="+")
    p.add_argument("--seconds", type=float, default=2)
    p.add_argument("--ingot", default=peers.INGOT)
    p.add_argument("--cc", default="gcc")
    p.add_argument("--march", default="avx2")
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for model in a.models:
            measure(model, a, folder)


if __name__ == "__main__":
    main()
