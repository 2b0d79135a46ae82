"""Writes .tflite files with the schema of ai-edge-litert, and runs them in its interpreter with reference kernels.

A Net is one model: input(), const() and op() add tensors and return their numbers.
store() takes the shapes of results from the interpreter.
Needs the packages of test/requirements-tflite.txt.
"""
from dataclasses import dataclass

import flatbuffers
import numpy as np
from ai_edge_litert import interpreter as litert
from ai_edge_litert import schema_py_generated as S

KINDS = {"f32": ("FLOAT32", np.float32), "f16": ("FLOAT16", np.float16), "f64": ("FLOAT64", np.float64), "i8": ("INT8", np.int8),
         "u8": ("UINT8", np.uint8), "i16": ("INT16", np.int16), "u16": ("UINT16", np.uint16), "i32": ("INT32", np.int32), "u32": ("UINT32", np.uint32),
         "i64": ("INT64", np.int64), "bool": ("BOOL", np.bool_), "resource": ("RESOURCE", np.int32), "i4": ("INT4", np.int8)}
BY_NUMPY = {np.dtype(v[1]): k for k, v in KINDS.items() if k not in ("resource", "i4")}

# Codes of fused activations and paddings in the schema.
NONE, RELU, RELU_N1, RELU6, TANH = 0, 1, 2, 3, 4
SAME, VALID = 0, 1


@dataclass
class Q:
    """Quantization parameters of a tensor; lists: one entry for each point of an axis."""
    scale: object
    zero: object = 0
    axis: int = 0


def camel(name):
    head, *rest = name.split("_")
    return head + "".join(x[:1].upper() + x[1:] for x in rest)


class Net:
    def __init__(self):
        self.model = S.ModelT()
        self.model.version, self.model.description = 3, "test"
        self.model.operatorCodes, self.model.subgraphs = [], []
        self.model.buffers = [S.BufferT()]
        self.codes = {}
        self.main = self.graph = self.subgraph("main")

    # ---- sub-graphs ----

    def subgraph(self, name):
        g = S.SubGraphT()
        g.name, g.tensors, g.inputs, g.outputs, g.operators = name, [], [], [], []
        self.model.subgraphs.append(g)
        return g

    def begin(self, name):
        """Starts a sub-graph; returns its number."""
        self.graph = self.subgraph(name)
        return len(self.model.subgraphs) - 1

    def end(self):
        self.graph = self.main

    # ---- tensors ----

    def tensor(self, kind, shape=(), q=None, name=None, buffer=0, variable=False, signature=None):
        t = S.TensorT()
        t.name = name or f"t{len(self.graph.tensors)}"
        t.shape, t.type, t.buffer = list(shape), getattr(S.TensorType, KINDS[kind][0]), buffer
        t.isVariable, t.hasRank = variable, True
        if signature is not None:
            t.shapeSignature = list(signature)
        if q is not None:
            t.quantization = S.QuantizationParametersT()
            t.quantization.scale = [float(x) for x in np.atleast_1d(q.scale)]
            t.quantization.zeroPoint = [int(x) for x in np.broadcast_to(np.atleast_1d(q.zero), (len(t.quantization.scale),))]
            t.quantization.quantizedDimension = q.axis
        self.graph.tensors.append(t)
        return len(self.graph.tensors) - 1

    def input(self, kind, shape, q=None, name=None, signature=None):
        t = self.tensor(kind, shape, q, name or f"x{len(self.graph.inputs)}", signature=signature)
        self.graph.inputs.append(t)
        return t

    def const(self, array, q=None, kind=None, name=None):
        array = np.asarray(array)
        b = S.BufferT()
        b.data = np.frombuffer(array.tobytes(), np.uint8)
        self.model.buffers.append(b)
        return self.tensor(kind or BY_NUMPY[array.dtype], array.shape, q, name, len(self.model.buffers) - 1)

    def shape_of(self, ints):
        return self.const(np.array(ints, np.int32))

    def variable(self, kind, shape, q=None):
        return self.tensor(kind, shape, q, variable=True)

    # ---- operators ----

    def op(self, code, ins, outs, options=None, custom=None, version=1, intermediates=None, **fields):
        """outs: (kind, q) or (kind, q, shape) of each result, or a kind; returns their numbers, or the number if there is one.
        options: name of the record without -Options; fields: its fields as in the schema."""
        key = (code, version)
        if key not in self.codes:
            c = S.OperatorCodeT()
            number = getattr(S.BuiltinOperator, code, S.BuiltinOperator.CUSTOM)
            c.builtinCode, c.deprecatedBuiltinCode, c.version = number, min(number, 127), version
            if number == S.BuiltinOperator.CUSTOM:
                c.customCode = code
            self.codes[key] = len(self.model.operatorCodes)
            self.model.operatorCodes.append(c)
        o = S.OperatorT()
        o.opcodeIndex, o.inputs = self.codes[key], list(ins)
        made = []
        for spec in outs:
            kind, q, shape = (*((spec,) if isinstance(spec, str) else spec), None, ())[:3]
            made.append(self.tensor(kind, shape or (), q, name=f"y{len(self.graph.tensors)}"))
        o.outputs = made
        if intermediates:
            o.intermediates = intermediates
        if options:
            self.set_options(o, options + "Options", fields)
        if custom is not None:
            o.customOptions = np.frombuffer(custom, np.uint8)
        self.graph.operators.append(o)
        return made[0] if len(made) == 1 else made

    @staticmethod
    def set_options(o, name, fields):
        record = getattr(S, name + "T")()
        for k, v in fields.items():
            if not hasattr(record, camel(k)):
                raise SystemExit(f"{name} has no field {k}")
            setattr(record, camel(k), v)
        if hasattr(S.BuiltinOptions, name):
            o.builtinOptions, o.builtinOptionsType = record, getattr(S.BuiltinOptions, name)
        else:
            o.builtinOptions2, o.builtinOptions2Type = record, getattr(S.BuiltinOptions2, name)

    def result(self, *tensors):
        self.graph.outputs += tensors

    # ---- the file ----

    def pack(self):
        b = flatbuffers.Builder(1 << 16)
        b.Finish(self.model.Pack(b), b"TFL3")
        return bytes(b.Output())

    def settle(self, judge):
        """Returns shapes of all results from the interpreter, for the file."""
        for i, t in enumerate(self.main.tensors):
            if t.buffer == 0 and not t.isVariable:
                t.shape = [int(x) for x in judge.get_tensor_details()[i]["shape"]] if i < len(judge.get_tensor_details()) else t.shape


def judge_of(data, keep=False, kernels="ref"):
    """Selects reference kernels, or the built-in ones for operators without a reference kernel (CEIL, ROUND, ELU)."""
    kinds = litert.OpResolverType
    for kind in (kinds.BUILTIN_REF, kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES)[kernels != "ref":]:
        try:
            return litert.Interpreter(model_content=data, experimental_op_resolver_type=kind, experimental_preserve_all_tensors=keep, num_threads=1)
        except ValueError as e:
            if "Didn't find op" not in str(e) or kind != kinds.BUILTIN_REF:
                raise
    return None


def ask(judge, inputs):
    """Returns the results of one run, in the order of the model's outputs; inputs are in the order of the model's inputs."""
    for d, x in zip(judge.get_input_details(), inputs):
        judge.set_tensor(d["index"], x)
    judge.invoke()
    return [judge.get_tensor(d["index"]).copy() for d in judge.get_output_details()]


def store(net, runs, kernels="ref"):
    """Returns (bytes of the file, results of each run). runs: lists of inputs; state carries over to the next run."""
    judge = judge_of(net.pack(), kernels=kernels)
    for d, x in zip(judge.get_input_details(), runs[0]):
        if tuple(d["shape"]) != x.shape:
            judge.resize_tensor_input(d["index"], x.shape)
    judge.allocate_tensors()
    results = [ask(judge, x) for x in runs]
    net.settle(judge)
    return net.pack(), results
