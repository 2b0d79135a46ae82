"""Values, bindings, metadata and traces of ONNX Runtime's interface; see session.py.

Arguments and results are those of OrtValue, IOBinding, ModelMetadata and profiling of ONNX Runtime. An OrtValue is a NumPy array in CPU
memory. A trace has the session and its runs as events of Chrome's trace format, without single nodes."""
from __future__ import annotations

import ctypes
import json
import mmap
import os
import time
from typing import Any, Iterator, Sequence

import numpy as np

from ._lib import Usage
from ._types import DTYPES, NAMES, ORT, as_array

# Element types by their numbers in TensorProto.
ONNX = {1: "f32", 2: "u8", 3: "i8", 4: "u16", 5: "i16", 6: "i32", 7: "i64", 9: "bool", 10: "f16", 11: "f64", 12: "u32", 13: "u64", 14: "c64",
        15: "c128", 16: "bf16"}


def _cpu(device_type: str) -> None:
    if device_type != "cpu":
        raise Usage(f"device '{device_type}': expected 'cpu'")


def _dtype(element_type: Any) -> np.dtype:
    """Returns the NumPy dtype of a NumPy type or of a TensorProto number."""
    if isinstance(element_type, (int, np.integer)) and not isinstance(element_type, bool):
        name = ONNX.get(int(element_type), "")
        if name not in DTYPES:
            raise Usage(f"element type {element_type}: expected a type of NumPy, or one of {', '.join(map(str, ONNX))}")
        return DTYPES[name]
    return np.dtype(element_type)


def _at(dtype: np.dtype, shape: Sequence[int], pointer: int) -> np.ndarray:
    """Returns an array over the memory at an address, which must outlive it."""
    n = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return np.frombuffer((ctypes.c_char * n).from_address(pointer), dtype).reshape(shape) if n else np.empty(shape, dtype)


class OrtValue:
    """A tensor. It shares the memory of the array that it was made from."""

    def __init__(self, x: Any) -> None:
        self._x = x

    @staticmethod
    def ortvalue_from_numpy(numpy_obj: np.ndarray, device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        _cpu(device_type)
        return OrtValue(as_array(numpy_obj, None))

    @staticmethod
    def ortvalue_from_shape_and_type(shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        _cpu(device_type)
        return OrtValue(np.zeros(tuple(shape), _dtype(element_type)))

    def numpy(self) -> Any:
        return self._x

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._x, dtype=dtype) if copy else np.asarray(self._x, dtype)

    def __dlpack__(self, **how: Any) -> Any:
        return self._x.__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def shape(self) -> list[int]:
        return list(self._x.shape)

    def data_type(self) -> str:
        if not self.is_tensor():
            return "seq(tensor)"
        return f"tensor({ORT[NAMES[self._x.dtype]] if self._x.dtype in NAMES else 'string'})"

    def element_type(self) -> int:
        return next((number for number, name in ONNX.items() if DTYPES.get(name) == self._x.dtype), 8)

    def data_ptr(self) -> int:
        return int(self._x.__array_interface__["data"][0])

    def tensor_size_in_bytes(self) -> int:
        return int(self._x.nbytes)

    def device_name(self) -> str:
        return "cpu"

    def is_tensor(self) -> bool:
        return isinstance(self._x, np.ndarray)

    def is_tensor_sequence(self) -> bool:
        return isinstance(self._x, list)

    def is_sparse_tensor(self) -> bool:
        return False

    def has_value(self) -> bool:
        return self._x is not None

    def update_inplace(self, data: np.ndarray) -> None:
        if data.shape != self._x.shape or data.dtype != self._x.dtype:
            raise Usage(f"update_inplace: the value is {self._x.dtype}{self.shape()}, found {data.dtype}{list(data.shape)}")
        self._x[...] = data


class IOBinding:
    """Arrays of a session's inputs and outputs, bound once for many runs."""

    def __init__(self, session: Any) -> None:
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, np.ndarray | None] = {}
        self._results: list[Any] = []
        self._known = {False: [a.name for a in session.get_inputs()], True: [a.name for a in session.get_outputs()]}

    def _name(self, name: str, is_output: bool) -> str:
        if name not in self._known[is_output]:
            raise Usage(f"the model has no {'output' if is_output else 'input'} '{name}'; there are {', '.join(self._known[is_output])}")
        return name

    def bind_cpu_input(self, name: str, arr_on_cpu: Any) -> None:
        self._inputs[self._name(name, False)] = arr_on_cpu

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        self._inputs[self._name(name, False)] = ortvalue.numpy()

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int) -> None:
        _cpu(device_type)
        self._inputs[self._name(name, False)] = _at(_dtype(element_type), shape, buffer_ptr)

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None, shape: Sequence[int] | None = None,
                    buffer_ptr: int | None = None) -> None:
        """Binds an output; without an address, the run allocates the array."""
        _cpu(device_type)
        if buffer_ptr is not None and (element_type is None or shape is None):
            raise Usage(f"bind_output '{name}': an address needs element_type and shape")
        self._outputs[self._name(name, True)] = None if buffer_ptr is None else _at(_dtype(element_type), shape or (), buffer_ptr)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        self._outputs[self._name(name, True)] = ortvalue.numpy()

    def clear_binding_inputs(self) -> None:
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        self._outputs.clear()
        self._results = []

    def synchronize_inputs(self) -> None:
        """Returns at once: CPU memory needs no synchronization."""

    def synchronize_outputs(self) -> None:
        """Returns at once: CPU memory needs no synchronization."""

    def get_outputs(self) -> list[OrtValue]:
        return [OrtValue(x) for x in self._results]

    def copy_outputs_to_cpu(self) -> list[Any]:
        return [x.copy() if isinstance(x, np.ndarray) else x for x in self._results]


class ModelMetadata:
    """Metadata of an ONNX file; empty for other formats."""

    def __init__(self) -> None:
        self.producer_name = self.graph_name = self.domain = self.description = self.graph_description = ""
        self.version = (1 << 63) - 1  # the default of ONNX Runtime
        self.custom_metadata_map: dict[str, str] = {}


def _varint(data: Any, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value, at


def _fields(data: Any, at: int, end: int) -> Iterator[tuple[int, Any]]:
    """Yields the fields of a protobuf message: numbers, or (begin, end) of bytes."""
    while at < end:
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield tag >> 3, value
        elif kind == 2:
            n, at = _varint(data, at)
            if n > end - at:
                raise IndexError("a field is longer than its message")
            yield tag >> 3, (at, at + n)
            at += n
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            raise IndexError(f"unknown wire type {kind}")


def _read(data: Any, out: ModelMetadata) -> None:
    def text(span: tuple[int, int]) -> str:
        return bytes(data[span[0]:span[1]]).decode("utf-8", "replace")
    for number, value in _fields(data, 0, len(data)):
        if number in (2, 4, 6) and isinstance(value, tuple):
            setattr(out, {2: "producer_name", 4: "domain", 6: "description"}[number], text(value))
        elif number == 5 and isinstance(value, int):
            out.version = value - (1 << 64) if value >> 63 else value
        elif number == 7 and isinstance(value, tuple):
            for inner, span in _fields(data, *value):
                if inner in (2, 10) and isinstance(span, tuple):
                    setattr(out, "graph_name" if inner == 2 else "graph_description", text(span))
        elif number == 14 and isinstance(value, tuple):
            entry = {k: text(span) for k, span in _fields(data, *value) if isinstance(span, tuple)}
            out.custom_metadata_map[entry.get(1, "")] = entry.get(2, "")


def metadata(source: str | bytes) -> ModelMetadata:
    out = ModelMetadata()
    try:
        if isinstance(source, bytes):
            _read(source, out)
        elif os.path.isfile(source) and os.path.getsize(source):
            with open(source, "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as data:
                _read(data, out)
    except (IndexError, TypeError):
        return ModelMetadata()  # another format
    return out


class Trace:
    """Events of a session, with times in microseconds since it began."""

    def __init__(self) -> None:
        self.start_ns = time.time_ns()
        self._zero = time.perf_counter_ns()
        self._events: list[dict[str, Any]] = []

    def now(self) -> int:
        return time.perf_counter_ns()

    def add(self, name: str, since: int, **args: Any) -> None:
        import threading
        self._events.append({"cat": "Session", "pid": os.getpid(), "tid": threading.get_native_id(), "dur": (self.now() - since) // 1000,
                             "ts": (since - self._zero) // 1000, "ph": "X", "name": name, "args": args})

    def write(self, prefix: str) -> str:
        path = f"{prefix}_{time.strftime('%Y-%m-%d_%H-%M-%S')}_{os.getpid()}.json"
        aside = f"{path}.{time.perf_counter_ns()}"
        with open(aside, "x") as f:
            f.write("[\n" + ",\n".join(json.dumps(e) for e in self._events) + "\n]\n")
        os.replace(aside, path)
        return path
