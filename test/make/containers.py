"""Writes and reads weight files with the packages gguf and safetensors, and prints their contents as test/unit/lm_file.c does.

    containers.py write OUT     generates files OUT/NAME and OUT/NAME.txt; for GGUF also the floats, OUT/NAME.f32
    containers.py read FILE     prints the contents of FILE
"""
import json
import os
import pathlib
import struct
import sys
import zlib

import gguf
import numpy as np
import safetensors.numpy

SHOWN = 64
NAMES = {"UINT8": "u8", "INT8": "i8", "UINT16": "u16", "INT16": "i16", "UINT32": "u32", "INT32": "i32", "FLOAT32": "f32", "BOOL": "bool",
         "STRING": "string", "UINT64": "u64", "INT64": "i64", "FLOAT64": "f64"}
PLAIN = "F32 F16 F64 I8 I16 I32 I64".split()
KINDS = "F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS TQ1_0 TQ2_0 MXFP4 I8 I16 I32 I64 F64".split()


def element(kind, x):
    if kind == "STRING":
        return x.encode().hex()
    return "%.17g" % x if kind.startswith("FLOAT") else str(int(x))


def key_line(field):
    many = field.types[0] == gguf.GGUFValueType.ARRAY
    kind = field.types[-1].name
    if kind == "STRING":  # contents() would decode the bytes, but tokens need not be UTF-8
        items = [bytes(field.parts[i]).hex() for i in field.data]
    else:
        items = [element(kind, x) for x in (field.contents() if many else [field.contents()])]
    text = "".join(i + " " for i in items)
    shown = text if len(items) <= SHOWN else "%08x" % zlib.adler32(text.encode())
    return f"key {field.name} {'list of ' if many else ''}{NAMES[kind]} {len(items)} {shown}"


def read_gguf(path):
    r = gguf.GGUFReader(path)
    fields = [f for f in r.fields.values() if not f.name.startswith("GGUF.")]
    yield "gguf " + r.fields["general.architecture"].contents()
    yield from map(key_line, fields)
    for t in r.tensors:
        data = np.ascontiguousarray(t.data).tobytes()
        yield f"tensor {t.name} {t.tensor_type.name} {' '.join(map(str, t.shape[::-1]))} {len(data)} {zlib.adler32(data):08x}"


def read_safetensors(path):
    with open(os.path.join(os.path.dirname(path), "config.json")) as f:
        yield "safetensors " + json.load(f)["model_type"]
    names = {}
    with open(path, "rb") as f:
        head = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
    for name, x in safetensors.numpy.load_file(path).items():
        names[name] = np.ascontiguousarray(x).tobytes(), x.shape
    for name in sorted((n for n in head if n != "__metadata__"), key=lambda n: head[n]["data_offsets"]):
        data, shape = names[name]
        yield f"tensor {name} {head[name]['dtype']} {''.join(f'{n} ' for n in shape)}{len(data)} {zlib.adler32(data):08x}"


def numbers(path):
    """Returns all tensors as floats, concatenated."""
    with np.errstate(all="ignore"):
        return np.concatenate([gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float32).ravel() if t.tensor_type.name not in PLAIN else
                               t.data.astype(np.float32).ravel() for t in gguf.GGUFReader(path).tensors])


def add(w, name, kind, shape, r):
    """Returns random bytes; another test checks what they mean."""
    elems, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
    data = r.integers(0, 256, (*shape[:-1], shape[-1] // elems * size), dtype=np.uint8)
    w.add_tensor(name, data, raw_shape=data.shape, raw_dtype=gguf.GGMLQuantizationType[kind])


def write_gguf(path, align=None, **split):
    w = gguf.GGUFWriter(pathlib.Path(path), "llama", **split)
    r = np.random.default_rng(5)
    if align:
        w.add_custom_alignment(align)
    w.add_name("Näme")
    w.add_block_count(2)
    w.add_rope_freq_base(1e4)
    w.add_add_bos_token(True)
    w.add_int8("x.i8", -3)
    w.add_uint16("x.u16", 40000)
    w.add_int64("x.i64", -(1 << 50))
    w.add_uint64("x.u64", 1 << 50)
    w.add_float64("x.f64", 0.1)
    w.add_token_list([f"t{i}" for i in range(200)])
    w.add_token_types([1] * 200)
    w.add_array("x.floats", [0.5, 1.5])
    w.add_array("x.flags", [True, False])
    for i, kind in enumerate(KINDS):
        add(w, f"{kind}.weight", kind, ((3, 512), (256,), (2, 1, 256), (1, 2, 2, 256))[i % 4], r)
    w.write_header_to_file(path=pathlib.Path(path))
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def write(out):
    for name, align, split in (("plain.gguf", None, {}), ("wide.gguf", 256, {}), ("parts.gguf", None, {"split_max_tensors": 9})):
        write_gguf(os.path.join(out, name), align, **split)
        if not split:
            with open(os.path.join(out, name + ".txt"), "w") as f:
                f.writelines(line + "\n" for line in read_gguf(os.path.join(out, name)))
            numbers(os.path.join(out, name)).tofile(os.path.join(out, name + ".f32"))
    r = np.random.default_rng(6)
    arrays = {f"t{i}.{np.dtype(t).name}": (r.random((i + 1, 3)) * 100).astype(t) for i, t in
              enumerate(("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"))}
    path = os.path.join(out, "plain.safetensors")
    safetensors.numpy.save_file({**arrays, "none": np.zeros((0, 3), "f4"), "one": np.array(3, "f4")}, path, {"format": "np"})
    with open(os.path.join(out, "config.json"), "w") as f:
        f.write('{"model_type": "llama"}')
    with open(path + ".txt", "w") as f:
        f.writelines(line + "\n" for line in read_safetensors(path))


if sys.argv[1] == "write":
    write(sys.argv[2])
else:
    print("\n".join((read_gguf if sys.argv[2].endswith(".gguf") else read_safetensors)(sys.argv[2])))
