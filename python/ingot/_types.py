"""Element types: names of ingot, NumPy and ONNX Runtime; objects with __dlpack__ as NumPy arrays without a copy.

Types that NumPy lacks (bfloat16, float8, int4 ...) come from ml_dtypes, if it is installed."""
from __future__ import annotations

import ctypes
import numbers
from typing import Any

import numpy as np

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

MORE = {"f8e4m3fn": "float8_e4m3fn", "f8e4m3fnuz": "float8_e4m3fnuz", "f8e5m2": "float8_e5m2", "f8e5m2fnuz": "float8_e5m2fnuz",
        "f8e8m0": "float8_e8m0fnu", "f4e2m1": "float4_e2m1fn", "bf16": "bfloat16"}
DTYPES: dict[str, np.dtype] = {"f64": np.dtype("f8"), "f32": np.dtype("f4"), "f16": np.dtype("f2"), "bool": np.dtype("?"),
                               "c64": np.dtype("c8"), "c128": np.dtype("c16")}
DTYPES.update({f"{c}{bits}": np.dtype(f"{c}{bits // 8}") for c in "iu" for bits in (8, 16, 32, 64)})
# Integers narrower than a byte, with their sign; the library takes one per byte.
NARROW = {f"{c}{bits}": np.dtype(getattr(ml_dtypes, f"{name}{bits}")) for c, name in (("i", "int"), ("u", "uint")) for bits in (2, 4)
          if hasattr(ml_dtypes, f"{name}{bits}")}
DTYPES.update(NARROW)
DTYPES.update({k: np.dtype(getattr(ml_dtypes, v)) for k, v in MORE.items() if hasattr(ml_dtypes, v)})
NAMES = {v: k for k, v in DTYPES.items()}
STORED = {NARROW[k]: np.dtype("i1" if k[0] == "i" else "u1") for k in NARROW}

ORT = {"f64": "double", "f32": "float", "f16": "float16", "bf16": "bfloat16", "bool": "bool", "str": "string", "c64": "complex64",
       "c128": "complex128", "f8e4m3fn": "float8e4m3fn", "f8e4m3fnuz": "float8e4m3fnuz", "f8e5m2": "float8e5m2",
       "f8e5m2fnuz": "float8e5m2fnuz", "f4e2m1": "float4e2m1"}
ORT.update({f"{c}{bits}": f"{'u' if c == 'u' else ''}int{bits}" for c in "iu" for bits in (2, 4, 8, 16, 32, 64)})


class _Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("number", ctypes.c_int32)]


class _Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Array(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", _Device), ("rank", ctypes.c_int32), ("dtype", _Type),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64)]


class _Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("array", _Array)]


HOST = (1, 3, 11)  # devices with host memory: CPU, and pinned memory of CUDA and ROCm
READ_ONLY = 1
CODES = {0: "i", 1: "u", 2: "f", 5: "c"}


class _View:
    """Memory of a DLPack capsule for NumPy. The capsule lives as long as the array."""

    def __init__(self, capsule: Any, interface: dict) -> None:
        self.capsule, self.__array_interface__ = capsule, interface


def _capsule(x: Any) -> Any:
    try:
        return x.__dlpack__(max_version=(1, 0))
    except (TypeError, BufferError):
        return x.__dlpack__()  # a producer without versions


def from_dlpack(x: Any) -> np.ndarray:
    """Returns an array that shares the memory of x, a tensor in host memory of PyTorch, JAX or CuPy; supports bfloat16."""
    device = x.__dlpack_device__()[0]
    if int(device) not in HOST:
        raise BufferError(f"the array is on device {int(device)} (DLPack): copy it to the CPU first")
    capsule = _capsule(x)
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype, api.PyCapsule_GetPointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    name = api.PyCapsule_GetName(capsule)
    at = api.PyCapsule_GetPointer(capsule, name)
    is_read_only = False
    if name == b"dltensor_versioned":
        whole = _Versioned.from_address(at)
        array, is_read_only = whole.array, bool(whole.flags & READ_ONLY)
    else:
        array = _Array.from_address(at)
    kind, size = array.dtype, array.dtype.bits // 8
    is_bf16 = kind.code == 4 and kind.bits == 16
    if kind.lanes != 1 or kind.bits % 8 or not (kind.code in CODES or kind.code == 6 or is_bf16):
        raise BufferError(f"an array of type {kind.code} with {kind.bits} bits of DLPack")
    if is_bf16 and ml_dtypes is None:
        raise BufferError("an array of bfloat16 needs the package ml_dtypes")
    word = "|b1" if kind.code == 6 else "<u2" if is_bf16 else f"<{CODES[kind.code]}{size}"
    shape = tuple(array.shape[i] for i in range(array.rank))
    strides = tuple(array.strides[i] * size for i in range(array.rank)) if array.rank and array.strides else None
    where = (array.data or 0) + array.offset
    out = np.asarray(_View(capsule, {"version": 3, "shape": shape, "strides": strides, "typestr": word, "data": (where, is_read_only)}))
    return out.view(ml_dtypes.bfloat16) if is_bf16 else out


def converted(x: np.ndarray, wanted: np.dtype) -> np.ndarray:
    """Converts x to another element type. Floats are rounded; a number that the type cannot represent is refused: 1.5, 300 or NaN as uint8."""
    if x.dtype == wanted:
        return x
    strangers = [e for e in x.reshape(-1) if not isinstance(e, numbers.Number)] if x.dtype == object else []
    if strangers:
        raise TypeError(f"expected a number, found {strangers[0]!r}")
    if x.dtype == object and wanted.kind in "iu":  # astype does not say which element is wrong
        most = np.iinfo(wanted)
        for e in x.reshape(-1):
            if isinstance(e, numbers.Real) and not most.min <= e <= most.max:  # type: ignore[operator]
                raise ValueError(f"expected {wanted}, found {e}")
    if x.dtype.kind in "SUmM" or (x.dtype.kind == "c" and wanted.kind != "c"):
        raise TypeError(f"expected {wanted}, found {x.dtype}")
    with np.errstate(all="ignore"):
        out = x.astype(wanted)
        if wanted.kind in "iub" or wanted in STORED:
            wrong = (out.astype(STORED[wanted]) if wanted in STORED else out) != x
        else:
            wrong = ~np.isfinite(out) & np.isfinite(x.astype(np.complex128 if wanted.kind == "c" else np.float64))
    if np.any(wrong):
        raise ValueError(f"expected {wanted}, found {x[wrong].reshape(-1)[0]}")
    return out


def as_array(x: Any, wanted: np.dtype | None) -> np.ndarray:
    """Returns x as a contiguous array; x itself if it is one. wanted: dtype for values that are not arrays."""
    if not isinstance(x, np.ndarray):
        if hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__"):
            x = from_dlpack(x)
        else:
            found = np.asarray(x)
            if found.dtype.kind == "f" and wanted is not None and wanted.kind in "iu":
                found = np.asarray(x, object)  # NumPy converts mixed integers beyond int64 to floats
            x = found if wanted is None else converted(found, wanted)
    if x.dtype.byteorder == ">":
        x = x.astype(x.dtype.newbyteorder("="))
    return x if x.flags.c_contiguous else x.copy(order="C")
