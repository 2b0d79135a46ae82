"""Writes random and extreme blocks of a block format, and the floats that the gguf package reads from them: KIND FOLDER."""
import os
import sys
import numpy as np
import gguf
from gguf.quants import dequantize


def blocks(kind, count=400):
    elems, size = gguf.GGML_QUANT_SIZES[kind]
    rng = np.random.default_rng(int(kind))
    x = rng.integers(0, 256, (count, size), dtype=np.uint8)
    for at, byte in enumerate((0, 255, 128, 127, 0x7c, 0xfc, 1, 0x80)):  # all bytes equal: gives zeros, NaN, infinities and subnormals
        x[at] = byte
    for at in range(8, 60):  # one byte differs from the others
        x[at] = (0, 255)[at % 2]
        x[at, rng.integers(size)] = rng.integers(256)
    return x


def main(kind, out):
    kind = gguf.GGMLQuantizationType[kind]
    x = blocks(kind)
    with np.errstate(all="ignore"):
        y = dequantize(x, kind)
    x.tofile(os.path.join(out, "in"))
    y.astype(np.float32).tofile(os.path.join(out, "out"))


main(*sys.argv[1:])
