"""The official backend interface of ONNX (onnx.backend.base); it needs the package onnx.

    import ingot.backend
    outputs = ingot.backend.run_model(model, [x, y])

In: a ModelProto and arrays. Out: arrays. Shapes are those of the arrays; a prepared model keeps the last few programs.
Strings, sequences and optionals are passed as files, in the layout of the official tests. The engine is the argument `engine`, else
$INGOT_ENGINE, else that of ingot.compile."""
from __future__ import annotations

import os
import tempfile
from typing import Any, Mapping, Sequence

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

from ._lib import Error, Model, Unsupported
from ._net import Net, default_engine

__all__ = ["Error", "IngotBackend", "Rep", "Unsupported", "prepare", "run_model", "run_node", "supports_device"]


def is_plain(value: onnx.ValueInfoProto) -> bool:
    t = value.type
    return t.HasField("tensor_type") and t.tensor_type.elem_type != onnx.TensorProto.STRING


def to_proto(x: Any, kind: onnx.TypeProto, name: str) -> Any:
    if kind.HasField("optional_type"):
        return numpy_helper.from_optional(x, name)
    if kind.HasField("sequence_type"):
        return numpy_helper.from_list(x, name)
    return numpy_helper.from_array(np.asarray(x), name)


def from_file(path: str, kind: onnx.TypeProto) -> Any:
    with open(path, "rb") as f:
        data = f.read()
    for field, proto, read in (("optional_type", onnx.OptionalProto, numpy_helper.to_optional),
                               ("sequence_type", onnx.SequenceProto, numpy_helper.to_list),
                               ("map_type", onnx.MapProto, numpy_helper.to_dict),
                               ("tensor_type", onnx.TensorProto, numpy_helper.to_array)):
        if kind.HasField(field):
            return read(proto.FromString(data))
    raise Unsupported(f"no way to read {kind}")


class Rep(BackendRep):
    """A compiled model."""

    def __init__(self, model: onnx.ModelProto, **options: Any) -> None:
        self.data = model.SerializeToString()
        options["engine"] = options.get("engine") or os.environ.get("INGOT_ENGINE") or default_engine()
        self.options = options
        init = {t.name for t in model.graph.initializer} | {t.values.name for t in model.graph.sparse_initializer}
        self.inputs = [v for v in model.graph.input if v.name not in init]
        self.all_inputs = {v.name: v for v in model.graph.input}
        self.outputs = list(model.graph.output)
        self.net: Net | None = None
        Model(self.data)  # refuses models that cannot be imported

    def named(self, inputs: Any) -> Mapping[str, Any]:
        if isinstance(inputs, dict):
            return inputs
        inputs = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        values = self.inputs if len(inputs) <= len(self.inputs) else list(self.all_inputs.values())
        return {v.name: x for v, x in zip(values, inputs)}

    def run(self, inputs: Any, seed: int = 0, **kwargs: Any) -> tuple[Any, ...]:
        values = self.named(inputs)
        if not all(is_plain(v) for v in (*self.all_inputs.values(), *self.outputs)):
            results = self.run_files(values, seed)
        else:
            self.net = self.net or Net(self.data, lazy=True, **self.options)
            self.net.seed = seed
            found = self.net.run(values)
            results = [found[v.name] for v in self.outputs]
        return namedtupledict("Outputs", [v.name for v in self.outputs])(*results)

    def run_files(self, values: Mapping[str, Any], seed: int) -> Sequence[Any]:
        m = Model(self.data)
        with tempfile.TemporaryDirectory() as folder:
            for i, (name, x) in enumerate(values.items()):
                with open(os.path.join(folder, f"input_{i}.pb"), "wb") as f:
                    f.write(to_proto(x, self.all_inputs[name].type, name).SerializeToString())
            m.call("input_file", folder.encode())
            m.call("import", 0)
            m.call("run", self.options["engine"].encode(), seed)
            m.call("write_outputs", folder.encode())
            return [from_file(os.path.join(folder, f"output_{i}.pb"), v.type) for i, v in enumerate(self.outputs)]


class IngotBackend(Backend):
    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> Rep:
        """kwargs: options of ingot.compile."""
        return Rep(model, **kwargs)

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node: onnx.NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None,
                 **kwargs: Any) -> tuple[Any, ...]:
        """Runs one operator on arrays. Types and shapes of its results are inferred, or given by outputs_info."""
        inputs = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        names = [name for name in node.input if name]
        values = [onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(np.asarray(x).dtype), np.shape(x))
                  for name, x in zip(names, inputs)]
        results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        for value, (dtype, shape) in zip(results, outputs_info or ()):
            value.CopyFrom(onnx.helper.make_tensor_value_info(value.name, onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape))
        opset = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        model = onnx.helper.make_model(onnx.helper.make_graph([node], "node", values, results),
                                       opset_imports=[onnx.helper.make_opsetid(node.domain, opset)])
        if not outputs_info:
            kinds = {v.name: v for v in onnx.shape_inference.infer_shapes(model).graph.output}
            for value in model.graph.output:
                value.CopyFrom(kinds[value.name])
        return cls.run_model(model, inputs, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device.split(":")[0] == "CPU"


prepare, run_model, run_node, supports_device = (IngotBackend.prepare, IngotBackend.run_model, IngotBackend.run_node,
                                                 IngotBackend.supports_device)
