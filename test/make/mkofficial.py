"""Indexes the official test data: mkofficial.py DATA OUT writes OUT/cases.json, and data sets of the light models to OUT/light.

Runs with the Python of build/venv.
Each case has name, model, data folder and the operators in it, sub-graphs included; operators of other domains are
`domain::Name`.
The light models have no inputs; as in the official runner, every input without an initializer is arange(n) / n.
"""
import json
import os
import shutil
import sys

import numpy as np
import onnx
from onnx import numpy_helper

SPOILED = ("test_add", "test_relu", "test_conv_with_strides_padding", "test_softmax_axis_1", "test_matmul_2d", "test_Conv2d")


def operators(graph, found):
    for node in graph.node:
        found.add(node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}::{node.op_type}")
        for a in node.attribute:
            for g in [a.g] if a.HasField("g") else list(a.graphs):
                operators(g, found)
    return found


def versions(model):
    """Returns for each operator the opset that introduced the version the model uses."""
    sets, found = {s.domain: s.version for s in model.opset_import}, {}
    for name in operators(model.graph, set()):
        domain, _, op = name.rpartition("::")
        opset = sets.get(domain, sets.get("ai.onnx", 1))
        try:
            found[name] = onnx.defs.get_schema(op, opset, domain).since_version
        except onnx.defs.SchemaError:
            found[name] = opset
    return found


def is_flat(t):
    """Is it a tensor of numbers, as inputs and outputs of a program are?"""
    return t.HasField("tensor_type") and t.tensor_type.elem_type != onnx.TensorProto.STRING


def light_data(model, expected, folder):
    os.makedirs(folder, exist_ok=True)
    have = {t.name for t in model.graph.initializer}
    free = [i for i in model.graph.input if i.name not in have]
    for i, value in enumerate(free):
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        n = int(np.prod(shape))
        x = (np.arange(n).astype(np.float32) / n).reshape(shape)
        with open(os.path.join(folder, f"input_{i}.pb"), "wb") as f:
            f.write(numpy_helper.from_array(x, value.name).SerializeToString())
    with open(expected, "rb") as f, open(os.path.join(folder, "output_0.pb"), "wb") as g:
        g.write(f.read())


def spoiled(case, out):
    """Writes data sets whose first output is wrong in a value, the type or the shape, for a few cases."""
    with open(os.path.join(case["data"], "output_0.pb"), "rb") as f:
        a = numpy_helper.to_array(onnx.TensorProto.FromString(f.read()))
    changed = a.copy()
    changed.reshape(-1)[-1] = changed.reshape(-1)[-1] * 1.01 + 0.01
    for how, b in (("value", changed), ("nan", np.where(np.arange(a.size).reshape(a.shape) == 0, np.nan, a).astype(a.dtype)),
                   ("type", a.astype(np.float64)), ("shape", a[None])):
        folder = os.path.join(out, "spoiled", case["name"], how)
        os.makedirs(folder, exist_ok=True)
        for name in os.listdir(case["data"]):
            shutil.copy(os.path.join(case["data"], name), folder)
        with open(os.path.join(folder, "output_0.pb"), "wb") as f:
            f.write(numpy_helper.from_array(b).SerializeToString())
        yield {"name": f"{case['name']}-{how}", "model": case["model"], "data": folder}


def main():
    data, out = sys.argv[1:]
    os.makedirs(out, exist_ok=True)
    cases = []
    for folder, _, files in sorted(os.walk(data)):
        for file in sorted(files):
            if not file.endswith(".onnx"):
                continue
            path = os.path.join(folder, file)
            kind = os.path.relpath(folder, data).split(os.sep)[0]
            model = onnx.load(path)
            if kind == "light":
                name = file[:-5]
                sets = os.path.join(out, "light", name)
                light_data(model, os.path.join(folder, name + "_output_0.pb"), sets)
            else:
                name = os.path.basename(folder)
                sets = os.path.join(folder, "test_data_set_0")
            cases.append({"kind": kind, "name": name, "model": path, "data": sets,
                          "ops": sorted(operators(model.graph, set())), "versions": versions(model),
                          "flat": all(is_flat(v.type) for v in [*model.graph.input, *model.graph.output])})
    few = [c for c in cases if c["name"] in SPOILED]
    with open(os.path.join(out, "spoiled.json"), "w") as f:
        json.dump([row for c in few for row in spoiled(c, out)], f, indent=1)
    with open(os.path.join(out, "cases.json"), "w") as f:
        json.dump(cases, f, indent=1)


main()
