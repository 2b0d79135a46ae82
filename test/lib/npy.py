"""Reads and writes .npy and .npz with the standard library alone.

An Array is a type name of ingot (f32, i64, ...), a shape and a flat list of Python numbers. NumPy is not needed, so tests of the text
form run without the Python environment.
"""
import ast
import math
import struct
import zipfile
from dataclasses import dataclass

# name of ingot -> (npy descriptor, struct letter)
KINDS = {
    "f64": ("<f8", "d"), "f32": ("<f4", "f"), "f16": ("<f2", "e"),
    "i64": ("<i8", "q"), "i32": ("<i4", "i"), "i16": ("<i2", "h"), "i8": ("|i1", "b"),
    "u64": ("<u8", "Q"), "u32": ("<u4", "I"), "u16": ("<u2", "H"), "u8": ("|u1", "B"),
    "bool": ("|b1", "?"),
}
BY_DESCR = {descr: name for name, (descr, _) in KINDS.items()}


@dataclass
class Array:
    kind: str
    shape: tuple
    data: list


def count(shape):
    return math.prod(shape)


def encode(a):
    descr, letter = KINDS[a.kind]
    shape = "(" + "".join(f"{d}, " for d in a.shape) + ")"
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode()
            + struct.pack(f"<{len(a.data)}{letter}", *a.data))


def decode(raw):
    if raw[:6] != b"\x93NUMPY":
        raise ValueError("not an .npy file")
    wide = raw[6] > 1
    size, = struct.unpack_from("<I" if wide else "<H", raw, 8)
    start = (12 if wide else 10) + size
    head = ast.literal_eval(raw[12 if wide else 10:start].decode())
    if head["fortran_order"] and len(head["shape"]) > 1:
        raise ValueError("column-major .npy")
    kind = BY_DESCR.get(head["descr"])
    if kind is None:
        raise ValueError(f"unknown .npy type {head['descr']}")
    shape = tuple(head["shape"])
    return Array(kind, shape, list(struct.unpack_from(f"<{count(shape)}{KINDS[kind][1]}", raw, start)))


def save(path, a):
    with open(path, "wb") as f:
        f.write(encode(a))


def save_npz(path, arrays):
    with zipfile.ZipFile(path, "w") as z:
        for name, a in arrays.items():
            z.writestr(name + ".npy", encode(a))


def load_npz_raw(path):
    """{name: bytes of the .npy member}"""
    with zipfile.ZipFile(path) as z:
        return {n[:-4] if n.endswith(".npy") else n: z.read(n) for n in z.namelist()}


def save_npz_raw(path, arrays):
    with zipfile.ZipFile(path, "w") as z:
        for name, raw in arrays.items():
            z.writestr(name + ".npy", raw)


def load_npz(path):
    return {name: decode(raw) for name, raw in load_npz_raw(path).items()}


def differ(got, want, rtol=0.0, atol=0.0):
    """None when equal within |got - want| <= atol + rtol * |want| (NaN equals NaN), else the reason."""
    if got.kind != want.kind or got.shape != want.shape:
        return f"is {got.kind}{list(got.shape)}, expected {want.kind}{list(want.shape)}"
    for i, (a, b) in enumerate(zip(got.data, want.data)):
        if a == b and (a != 0 or rtol or atol or math.copysign(1, a) == math.copysign(1, b)):
            continue
        if a != a and b != b:
            continue
        if not (rtol or atol) or a != a or b != b or math.isinf(a) or math.isinf(b) \
                or abs(a - b) > atol + rtol * abs(b):
            return f"element {i} is {a!r}, expected {b!r}"
    return None
