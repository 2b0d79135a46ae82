"""Runs models in ONNX Runtime and compares their outputs: quantized.py JOB.json.

JOB has `model`, `others` {name: path}, `held` (an .npz) and `out` (an .npz for the outputs).
Prints {name: {sqnr, accuracy, step}} as JSON.
session.x64quantprecision is 1, so that integer sums do not saturate.
"""
import json
import sys

import numpy as np
import onnx
import onnxruntime as ort


def session(path, plain=False):
    o = ort.SessionOptions()
    if plain:
        o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    o.add_session_config_entry("session.x64quantprecision", "1")
    o.intra_op_num_threads = 1
    o.log_severity_level = 3
    return ort.InferenceSession(path, o, providers=["CPUExecutionProvider"])


def outputs(path, data, plain=False):
    """plain: run the file as it is, without the optimizations of ONNX Runtime."""
    s = session(path, plain)
    names = [i.name for i in s.get_inputs()]
    n = len(data[names[0]])
    return np.concatenate([s.run(None, {k: data[k][i:i + 1] for k in names})[0] for i in range(n)])


def main(job):
    with open(job, encoding="utf-8") as f:
        job = json.load(f)
    data = dict(np.load(job["held"]))
    want, report, kept = outputs(job["model"], data), {}, {}
    for name, path in job["others"].items():
        onnx.checker.check_model(path)
        got = kept[name] = outputs(path, data)
        noise = ((got - want).astype(np.float64) ** 2).sum()
        report[name] = {"sqnr": float(10 * np.log10((want.astype(np.float64) ** 2).sum() / noise)) if noise else 999.0}
        if "label" in data:
            report[name]["lost"] = float(((want.argmax(-1) == data["label"]).mean() - (got.argmax(-1) == data["label"]).mean()) * 100)
    np.savez(job["out"], **kept)
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1])
