"""Writes the spellings of test/spell/*.t as ONNX files, with inputs and the results of ONNX Runtime.

mkspell.py OUT FILE... writes OUT/NAME/SPELLING.onnx, OUT/NAME/inputs.npz and OUT/NAME/SPELLING.npz.
Runs with the Python of build/venv.
test/suite/spell.py describes the files.
Graph parameters whose name begins with `w_` become constants, those with `p_` positive constants; all values follow from name
and shape.
"""
import os
import re
import shutil
import sys
import zlib

import numpy as np
import onnx
import onnx.parser
from onnx import helper, numpy_helper

import oracle


def values(name, kind, shape):
    rng = np.random.default_rng(zlib.crc32(f"{name}{list(shape)}".encode()))
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    if dtype == np.bool_:
        return rng.random(shape) < 0.7
    if np.issubdtype(dtype, np.integer):
        return rng.integers(0, 4, shape).astype(dtype)
    a = rng.uniform(0.5, 1.5, shape) if name.startswith("p_") else rng.standard_normal(shape) * (0.5 if name.startswith("w_") else 2)
    return a.astype(dtype)


def spellings(path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    parts = re.split(r"^# spelling: *(.*)\n", text, flags=re.M)
    for head, body in zip(parts[1::2], parts[2::2]):
        name, *more = head.split()
        opset = int(more[0]) if more else 17
        body = "\n".join(x for x in body.splitlines() if not x.startswith("#"))
        text = f'<ir_version: 10, opset_import: ["" : {opset}, "com.microsoft" : 1]>\ng {body}'
        yield name, onnx.parser.parse_model(text)


def fill(model):
    given, stay = {}, []
    for v in model.graph.input:
        t = v.type.tensor_type
        a = values(v.name, t.elem_type, tuple(d.dim_value for d in t.shape.dim))
        if v.name[:2] in ("w_", "p_"):
            model.graph.initializer.append(numpy_helper.from_array(a, v.name))
        else:
            given[v.name] = a
            stay.append(v)
    del model.graph.input[:]
    model.graph.input.extend(stay)
    return given


def main():
    out, *files = sys.argv[1:]
    shutil.rmtree(out, ignore_errors=True)
    for path in files:
        folder = os.path.join(out, os.path.basename(path)[:-2])
        os.makedirs(folder)
        for name, model in spellings(path):
            given = fill(model)
            onnx.save(model, os.path.join(folder, name + ".onnx"))
            # without fusion: fused, ONNX Runtime lets padding zeros lose against negative numbers
            session = oracle.session(model.SerializeToString(), optimise=False)
            got = dict(zip([o.name for o in session.get_outputs()], session.run(None, given)))
            np.savez(os.path.join(folder, "inputs.npz"), **given)
            np.savez(os.path.join(folder, name + ".npz"), **got)


main()
