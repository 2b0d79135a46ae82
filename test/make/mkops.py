"""Writes models of single operators with inputs and expected outputs: mkops.py OUT writes
OUT/NAME/{model.onnx,test_data_set_0/*.pb} and OUT/cases.json.

Runs with the Python of build/venv.
test/ops/*.py has the cases.
The expected outputs come from ONNX Runtime, from the reference evaluator of onnx if ONNX Runtime lacks the operator or is known
to be wrong, or from the case.
"""
import importlib
import json
import os
import sys
from dataclasses import dataclass, field

import numpy as np
import onnx
import onnx.parser
from onnx import helper, numpy_helper

TEST = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TEST)


@dataclass
class Case:
    name: str
    op: str
    inputs: list                 # input names of the node, "" if absent
    outputs: list
    data: dict                   # inputs of the model
    init: dict = field(default_factory=dict)
    attrs: dict = field(default_factory=dict)
    domain: str = ""
    opset: int = 20
    ml: int = 3
    judge: str = "ort"           # or "onnx"
    expect: list | None = None   # expected outputs, without a reference
    shown: list | None = None    # outputs of the model; default: all of the node
    floats: tuple = ()           # outputs declared as f32, because the reference cannot infer their type
    rtol: float = 1e-4
    atol: float = 1e-5
    text: str | None = None      # a whole graph in onnx's text form, instead of one node
    refuse: str | None = None    # the run must end with code 4 and this message
    compiled: bool = False       # also as C, which needs a bound for every size
    without: str | None = None   # the graph passes must leave no such core operator

    def model(self):
        if self.text:
            sets = f'["" : {self.opset}, "ai.onnx.ml" : {self.ml}, "ai.onnx.preview.training" : 1]'
            return onnx.parser.parse_model(f"<ir_version: 10, opset_import: {sets}>\n{self.text}")
        node = helper.make_node(self.op, self.inputs, self.outputs, domain=self.domain, **self.attrs)
        ins = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in self.data.items()]
        outs = [helper.make_tensor_value_info(o, onnx.TensorProto.FLOAT, None) if o in self.floats else helper.make_empty_tensor_value_info(o)
                for o in self.shown or self.outputs if o]
        graph = helper.make_graph([node], "g", ins, outs, [numpy_helper.from_array(v, k) for k, v in self.init.items()])
        sets = {"": self.opset, "com.microsoft": 1, "ai.onnx.ml": self.ml}
        return helper.make_model(graph, opset_imports=[helper.make_opsetid(k, v) for k, v in sets.items()], ir_version=10)


def answer(case, model):
    if case.refuse:
        return []
    if case.expect is not None:
        return case.expect
    if case.judge == "onnx":
        from onnx.reference import ReferenceEvaluator
        return ReferenceEvaluator(model).run(None, case.data)
    import oracle
    return oracle.session(model.SerializeToString(), optimise=False).run(None, case.data)


def map_proto(m, name=""):
    text = isinstance(next(iter(m)), str)
    kind = {float: np.float32, str: object}
    values = numpy_helper.from_list([np.asarray(v, kind.get(type(v))) for v in m.values()], "")
    return onnx.MapProto(name=name, key_type=onnx.TensorProto.STRING if text else onnx.TensorProto.INT64, values=values,
                         **{"string_keys" if text else "keys": [k.encode() if text else k for k in m]})


def map_list(maps, name):
    out = onnx.SequenceProto(name=name, elem_type=onnx.SequenceProto.MAP)
    out.map_values.extend(map_proto(m) for m in maps)
    return out


def store(x, name, path):
    if isinstance(x, dict):
        with open(path, "wb") as f:
            f.write(map_proto(x, name).SerializeToString())
        return
    if isinstance(x, list) and isinstance(x[0], dict):
        with open(path, "wb") as f:
            f.write(map_list(x, name).SerializeToString())
        return
    if isinstance(x, list):
        with open(path, "wb") as f:
            f.write(numpy_helper.from_list([np.asarray(e) for e in x], name).SerializeToString())
    else:
        onnx.save_tensor(numpy_helper.from_array(np.asarray(x), name), path)


def write(case, folder):
    model = case.model()
    try:
        expect = answer(case, model)
    except Exception as e:
        raise SystemExit(f"{case.name}: the judge refuses it: {e}") from None
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data, exist_ok=True)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    for i, (name, x) in enumerate(case.data.items()):
        store(x, name, os.path.join(data, f"input_{i}.pb"))
    for i, x in enumerate(expect):
        store(x, model.graph.output[i].name, os.path.join(data, f"output_{i}.pb"))
    return sorted({f"{n.domain}::{n.op_type}" if n.domain not in ("", "ai.onnx") else n.op_type for n in model.graph.node})


def main(out):
    folder = os.path.join(TEST, "ops")
    table = []
    for file in sorted(os.listdir(folder)):
        if not file.endswith(".py"):
            continue
        module = importlib.import_module("ops." + file[:-3])
        for case in module.cases(Case, np.random.default_rng(7)):
            name = f"{file[:-3]}/{case.name}"
            ops = write(case, os.path.join(out, name))
            table.append({"name": name, "ops": ops, "rtol": case.rtol, "atol": case.atol, "refuse": case.refuse, "without": case.without,
                          "compiled": case.compiled})
    if len({x["name"] for x in table}) != len(table):
        raise SystemExit("two cases have one name")
    with open(os.path.join(out, "cases.json"), "w") as f:
        json.dump(table, f)


main(sys.argv[1])
