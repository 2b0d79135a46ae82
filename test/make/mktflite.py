"""Writes TensorFlow Lite models with inputs and expected outputs: mktflite.py OUT writes
OUT/NAME/{model.tflite,in_K.npz,out_K.npz} and OUT/cases.json.

Runs with the Python of build/venv and the packages of build/tflite.
test/tflite/*.py has the cases.
The expected outputs come from the interpreter of ai-edge-litert with its reference kernels, or from the case if these are known
to be wrong.
"""
import importlib
import json
import os
import sys
from dataclasses import dataclass

import numpy as np

TEST = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TEST)
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tflitefile  # noqa: E402


@dataclass
class Case:
    name: str
    net: tflitefile.Net
    runs: list                   # lists of arrays: inputs of consecutive runs
    rtol: float = 1e-4           # tolerance of floats
    atol: float = 1e-5
    steps: int = 0               # largest difference of integers
    share: float = 0.0           # largest fraction of integers that may differ
    why: str = ""                # reason of these differences
    expect: list | None = None   # results of each run, without a reference
    refuse: str = ""             # ingot refuses it with this message
    compiled: bool = False       # also as C
    kernels: str = "ref"         # kernels of the interpreter: its reference kernels, or "builtin", its default
    state: bool = False          # consecutive runs have the same inputs


def write(case, folder):
    os.makedirs(folder, exist_ok=True)
    if case.expect is None and not case.refuse:
        data, results = tflitefile.store(case.net, case.runs, case.kernels)
    else:
        data, results = case.net.pack(), case.expect or []
    with open(os.path.join(folder, "model.tflite"), "wb") as f:
        f.write(data)
    graph = case.net.main
    ins = [graph.tensors[i].name for i in graph.inputs]
    outs = [graph.tensors[i].name for i in graph.outputs]
    for k, x in enumerate(case.runs):
        np.savez(os.path.join(folder, f"in_{k}.npz"), **dict(zip(ins, x)))
    for k, y in enumerate(results):
        np.savez(os.path.join(folder, f"out_{k}.npz"), **dict(zip(outs, y)))
    return results


def main(out, only=""):
    folder = os.path.join(TEST, "tflite")
    table, wrong = [], []
    for file in sorted(os.listdir(folder)):
        if not file.endswith(".py") or file.startswith("_"):
            continue
        module = importlib.import_module("tflite." + file[:-3])
        for case in module.cases(Case, np.random.default_rng(7)):
            name = f"{file[:-3]}/{case.name}"
            if only and only not in name:
                continue
            try:
                write(case, os.path.join(out, name))
            except (RuntimeError, ValueError) as e:
                wrong.append(f"{name}: the judge refuses it: {e}")
                continue
            ops = sorted({code for code, _ in case.net.codes})
            table.append({"name": name, "ops": ops, "runs": len(case.runs), "rtol": case.rtol, "atol": case.atol, "steps": case.steps,
                          "share": case.share, "why": case.why, "refuse": case.refuse, "compiled": case.compiled, "state": case.state})
    if wrong:
        raise SystemExit("\n".join(wrong))
    if len({x["name"] for x in table}) != len(table):
        raise SystemExit("two cases have one name")
    with open(os.path.join(out, "cases.json"), "w") as f:
        json.dump(table, f)


if __name__ == "__main__":
    main(*sys.argv[1:])
