"""ONNX backend: models run by libingot, through ctypes.

    import ingot_backend
    outputs = ingot_backend.run_model(model, [x, y])

In: a ModelProto and arrays. Out: arrays. Shapes are those of the arrays: every run compiles for them.
Plain tensors are handed over in memory; strings, sequences and optionals as files, the way the official tests keep them.
The library is $INGOT_LIBRARY, or build/libingot.so beside this folder; the engine is $INGOT_ENGINE: interp (the
default), ref or c.
"""
import ctypes
import os
import tempfile

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.base import Backend, BackendRep

FLOATS = {"f8e4m3fn": "float8_e4m3fn", "f8e4m3fnuz": "float8_e4m3fnuz", "f8e5m2": "float8_e5m2",
          "f8e5m2fnuz": "float8_e5m2fnuz", "f8e8m0": "float8_e8m0fnu", "f4e2m1": "float4_e2m1fn", "bf16": "bfloat16"}
DTYPES = {"f64": np.dtype("f8"), "f32": np.dtype("f4"), "f16": np.dtype("f2"), "bool": np.dtype("?"),
          "c64": np.dtype("c8"), "c128": np.dtype("c16")}
DTYPES |= {f"{c}{bits}": np.dtype(f"{c}{bits // 8}") for c in "iu" for bits in (8, 16, 32, 64)}
SMALL = {f"{c}{bits}": np.dtype(getattr(ml_dtypes, f"{name}{bits}")) for c, name in (("i", "int"), ("u", "uint"))
         for bits in (2, 4) if hasattr(ml_dtypes, f"{name}{bits}")}
DTYPES |= SMALL | {k: np.dtype(getattr(ml_dtypes, v)) for k, v in FLOATS.items() if hasattr(ml_dtypes, v)}
NAMES = {v: k for k, v in DTYPES.items()}


class Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_char_p), ("rank", ctypes.c_uint32),
                ("dim", ctypes.POINTER(ctypes.c_int64)), ("data", ctypes.c_void_p), ("bytes", ctypes.c_uint64)]


class Failure(Exception):
    """What ingot says; code as in ingot.h: 3 unsupported, 4 bad input, 5 system."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


class Unsupported(Failure):
    """The model is valid, but ingot cannot do it."""


def load():
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    lib = ctypes.CDLL(os.environ.get("INGOT_LIBRARY", os.path.join(here, "build", "libingot.so")))
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint32
    for name, result, *args in (
            ("new", pointer, pointer), ("free", None, pointer), ("message_count", number, pointer),
            ("message", text, pointer, number, ctypes.POINTER(ctypes.c_int)),
            ("open", ctypes.c_int, pointer, text),
            ("open_bytes", ctypes.c_int, pointer, text, ctypes.c_size_t, text),
            ("input", ctypes.c_int, pointer, ctypes.POINTER(Tensor)), ("input_file", ctypes.c_int, pointer, text),
            ("import", ctypes.c_int, pointer, ctypes.c_int), ("run", ctypes.c_int, pointer, text, ctypes.c_uint64),
            ("output_count", number, pointer), ("output", Tensor, pointer, number),
            ("write_outputs", ctypes.c_int, pointer, text)):
        fn = getattr(lib, "ingot_" + name)
        fn.restype, fn.argtypes = result, args
    return lib


LIB = load()


class Ingot:
    """One model and everything made from it; see ingot.h."""

    def __init__(self, data):
        self.data = data  # the library reads it where it lies
        self.m = LIB.ingot_new(None)
        if not self.m:
            raise MemoryError
        self.call(LIB.ingot_open_bytes, data, len(data), b"model.onnx")

    def __del__(self):
        if getattr(self, "m", None):
            LIB.ingot_free(self.m)

    def call(self, fn, *args):
        code = fn(self.m, *args)
        if not code:
            return
        errors = []
        for i in range(LIB.ingot_message_count(self.m)):
            warning = ctypes.c_int()
            message = LIB.ingot_message(self.m, i, ctypes.byref(warning)).decode("utf-8", "replace")
            if not warning.value:
                errors.append(message)
        raise (Unsupported if code == 3 else Failure)(code, "; ".join(errors) or f"status {code}")

    def give(self, name, x):
        x = np.asarray(x)
        kind = NAMES[x.dtype]
        if x.dtype in SMALL.values():
            x = x.astype(np.int8 if kind[0] == "i" else np.uint8)
        raw = x.tobytes()
        dim = (ctypes.c_int64 * x.ndim)(*x.shape)
        buffer = ctypes.create_string_buffer(raw, len(raw) + 1)
        t = Tensor(name.encode(), kind.encode(), x.ndim, dim, ctypes.cast(buffer, ctypes.c_void_p), len(raw))
        self.call(LIB.ingot_input, ctypes.byref(t))

    def output(self, i):
        t = LIB.ingot_output(self.m, i)
        shape = tuple(t.dim[k] for k in range(t.rank))
        raw = ctypes.string_at(t.data, t.bytes) if t.bytes else b""
        kind = t.dtype.decode()
        if DTYPES[kind] in SMALL.values():
            return np.frombuffer(raw, np.int8 if kind[0] == "i" else np.uint8).reshape(shape).astype(DTYPES[kind])
        return np.frombuffer(raw, DTYPES[kind]).reshape(shape).copy()


def is_plain(value_info):
    t = value_info.type
    return t.HasField("tensor_type") and t.tensor_type.elem_type != onnx.TensorProto.STRING


def to_proto(x, kind, name):
    if kind.HasField("optional_type"):
        return numpy_helper.from_optional(x, name)
    if kind.HasField("sequence_type"):
        return numpy_helper.from_list(x, name)
    return numpy_helper.from_array(np.asarray(x), name)


def from_file(path, kind):
    with open(path, "rb") as f:
        data = f.read()
    for field, proto, read in (("optional_type", onnx.OptionalProto, numpy_helper.to_optional),
                               ("sequence_type", onnx.SequenceProto, numpy_helper.to_list),
                               ("map_type", onnx.MapProto, numpy_helper.to_dict),
                               ("tensor_type", onnx.TensorProto, numpy_helper.to_array)):
        if kind.HasField(field):
            return read(proto.FromString(data))
    raise Unsupported(3, f"no way to read {kind}")


class Rep(BackendRep):
    def __init__(self, model, engine=None):
        self.data = model.SerializeToString()
        init = {t.name for t in model.graph.initializer} | {t.values.name for t in model.graph.sparse_initializer}
        self.inputs = [v for v in model.graph.input if v.name not in init]
        self.all_inputs = {v.name: v for v in model.graph.input}
        self.outputs = list(model.graph.output)
        self.engine = engine or os.environ.get("INGOT_ENGINE", "interp")
        Ingot(self.data)  # what cannot be read is refused here

    def named(self, inputs):
        if isinstance(inputs, dict):
            return inputs
        inputs = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        values = self.inputs if len(inputs) <= len(self.inputs) else list(self.all_inputs.values())
        return {v.name: x for v, x in zip(values, inputs)}

    def run(self, inputs, seed=0, **kwargs):
        values = self.named(inputs)
        m = Ingot(self.data)
        plain = all(is_plain(self.all_inputs[k]) for k in values if k in self.all_inputs)
        with tempfile.TemporaryDirectory() as folder:
            if plain:
                for name, x in values.items():
                    m.give(name, x)
            else:
                for i, (name, x) in enumerate(values.items()):
                    with open(os.path.join(folder, f"input_{i}.pb"), "wb") as f:
                        f.write(to_proto(x, self.all_inputs[name].type, name).SerializeToString())
                m.call(LIB.ingot_input_file, folder.encode())
            m.call(LIB.ingot_import, 0)
            m.call(LIB.ingot_run, self.engine.encode(), seed)
            if all(is_plain(v) for v in self.outputs):
                return tuple(m.output(i) for i in range(len(self.outputs)))
            m.call(LIB.ingot_write_outputs, folder.encode())
            return tuple(from_file(os.path.join(folder, f"output_{i}.pb"), v.type) for i, v in enumerate(self.outputs))


class IngotBackend(Backend):
    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        return Rep(model, kwargs.get("engine"))

    @classmethod
    def run_model(cls, model, inputs, device="CPU", **kwargs):
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def supports_device(cls, device):
        return device == "CPU"


prepare, run_model, supports_device = IngotBackend.prepare, IngotBackend.run_model, IngotBackend.supports_device
