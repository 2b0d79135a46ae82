"""Runs models that `ingot opt -o OUT.onnx` writes in ONNX Runtime: ortexport.py INGOT OUT CASE...

A CASE is a folder of the official test data.
Prints a line for each: `same NAME`, `refused NAME MESSAGE` (exit code 3), `differs NAME REASON`, or `skipped NAME REASON` if
ONNX Runtime cannot run the original or numpy lacks its types.
"""
import os
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper

ort.set_default_logger_severity(4)


def load(path):
    t = onnx.TensorProto()
    with open(path, "rb") as f:
        t.ParseFromString(f.read())
    return numpy_helper.to_array(t)


def results(path, feed):
    s = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    return s.run(None, {i.name: feed[i.name] for i in s.get_inputs()})


def differ(have, want):
    if want.dtype.name.startswith("float8"):
        want = want.view(np.uint8)  # ONNX Runtime returns these as bytes
    if have.shape != want.shape or have.dtype != want.dtype:
        return f"{have.dtype}{have.shape}, expected {want.dtype}{want.shape}"
    if have.dtype.kind in "fc":
        same = np.allclose(have.astype("f8"), want.astype("f8"), rtol=1e-3, atol=1e-5, equal_nan=True)
    else:
        same = (have == want).all()
    return None if same else "other numbers"


def case(ingot, out, folder):
    path, data = os.path.join(folder, "model.onnx"), os.path.join(folder, "test_data_set_0")
    graph = onnx.load(path).graph
    try:
        feed = {x.name: load(os.path.join(data, f"input_{i}.pb")) for i, x in enumerate(graph.input)}
        results(path, feed)
        want = [load(os.path.join(data, f"output_{i}.pb")) for i in range(len(graph.output))]
        if any(not v.type.HasField("tensor_type") for v in [*graph.input, *graph.output]):
            return "skipped", "not tensors"
    except Exception as e:  # operators, types and data that ONNX Runtime or numpy lacks
        return "skipped", str(e)
    got = subprocess.run([ingot, "opt", path, "--data", data, "-o", out], capture_output=True, text=True)
    if got.returncode == 3:
        return "refused", " ".join(x for x in got.stderr.splitlines() if " warning: " not in x)
    if got.returncode:
        return "differs", f"exit code {got.returncode}: {got.stderr}"
    try:
        onnx.checker.check_model(onnx.load(out), full_check=True)
        have = results(out, feed)
    except Exception as e:
        return "differs", str(e)
    if len(have) != len(want):
        return "differs", "another number of outputs"
    reasons = [r for r in map(differ, have, want) if r]
    return ("differs", reasons[0]) if reasons else ("same", "")


for folder in sys.argv[3:]:
    state, why = case(sys.argv[1], sys.argv[2], folder)
    print(state, os.path.basename(folder), " ".join(why.split())[:300])
