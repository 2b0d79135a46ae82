"""Writes GGUF and safetensors files byte by byte, also invalid ones that other writers refuse to write."""
import json
import struct

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
PACK = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "B", U64: "Q", I64: "q", F64: "d"}
TYPES = {"F32": (0, 1, 4), "F16": (1, 1, 2), "Q4_0": (2, 32, 18), "Q4_1": (3, 32, 20), "Q8_0": (8, 32, 34), "Q4_K": (12, 256, 144)}


def string(s):
    s = s.encode() if isinstance(s, str) else s
    return struct.pack("<Q", len(s)) + s


def value(kind, x):
    """x: a number, a text, or for ARRAY (element type, list)"""
    if kind == STRING:
        return string(x)
    if kind == ARRAY:
        return struct.pack("<IQ", x[0], len(x[1])) + b"".join(value(x[0], e) for e in x[1])
    return struct.pack("<" + PACK[kind], x)


def key(name, kind, x):
    return string(name) + struct.pack("<I", kind) + value(kind, x)


def tensor(name, sizes, kind=0, offset=0):
    """sizes: innermost first, as stored"""
    return string(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, kind, offset)


def gguf(keys=(), tensors=(), data=b"", version=3, align=32, counts=None, magic=b"GGUF"):
    """keys, tensors: bytes from key() and tensor(); counts: (tensors, keys) if they must be wrong"""
    nt, nk = counts or (len(tensors), len(keys))
    head = magic + struct.pack("<IQQ", version, nt, nk) + b"".join(keys) + b"".join(tensors)
    return head + (bytes(-len(head) % align) + data if tensors or data else b"")


ARCH = key("general.architecture", STRING, "llama")


def small_gguf():
    """A file of a few hundred bytes with one key of every type; the last tensor ends it."""
    keys = [ARCH, key("a.u8", U8, 200), key("a.i8", I8, -7), key("a.u16", U16, 65535), key("a.i16", I16, -300), key("a.u32", U32, 1 << 31),
            key("a.i32", I32, -5), key("a.f32", F32, 0.5), key("a.bool", BOOL, 1), key("a.u64", U64, 1 << 40), key("a.i64", I64, -(1 << 40)),
            key("a.f64", F64, 1e-5), key("a.ints", ARRAY, (I32, [1, -2, 3])), key("a.texts", ARRAY, (STRING, ["a", "", "bc"])),
            key("a.flags", ARRAY, (BOOL, [1, 0])), key("a.none", ARRAY, (F32, [])),
            key("a.deep", ARRAY, (ARRAY, [(U8, [1, 2]), (ARRAY, [(STRING, ["x"])])]))]
    tensors = [tensor("w", [32, 2], 8, 0), tensor("b", [3], 0, 96)]
    data = bytes(range(68)) + bytes(28) + struct.pack("<3f", 1, 2, 3)
    return gguf(keys, tensors, data)


def safetensors(entries, data, pad=0, header=None):
    """entries: {name: (dtype, shape, begin, end)}, or a text used as the header"""
    if not isinstance(entries, str):
        entries = json.dumps({k: v if isinstance(v, dict) else {"dtype": v[0], "shape": v[1], "data_offsets": [v[2], v[3]]}
                              for k, v in entries.items()}, separators=(",", ":"))
    text = entries.encode() + b" " * pad
    return struct.pack("<Q", len(text) if header is None else header) + text + data


def small_safetensors():
    return safetensors({"__metadata__": {"format": "pt"}, "w": ("BF16", [2, 3], 0, 12), "empty": ("F32", [0, 4], 12, 12),
                        "i": ("I64", [1], 12, 20), "flag": ("BOOL", [], 20, 21)}, bytes(range(21)), pad=3)
