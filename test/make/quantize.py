"""Writes rows of floats, and their bytes in a block format by the gguf package: KIND FOLDER."""
import os
import sys
import numpy as np
import gguf
from gguf.quants import quantize


def rows(count=600, n=64):
    """Random values at all scales; constant, zero, huge and tiny rows, one outlier, ties of both signs, small steps."""
    r = np.random.default_rng(11)
    x = r.standard_normal((count, n)) * 10.0 ** r.uniform(-6, 4, (count, 1))
    x[0], x[1], x[2], x[3] = 0, 1, -3.25, 1e-30
    x[4] = r.standard_normal(n) * 1e38
    x[5] = np.linspace(-3.4e38, 3.4e38, n)
    x[6] = r.standard_normal(n) * 1e-44
    x[7] = r.standard_normal(n) * 1e-39
    x[8] = r.standard_normal(n) * 1e-37
    x[9] = r.uniform(65000, 66000, n)
    x[10] = np.where(np.arange(n) % 2, 2, -2)
    x[11] = np.where(np.arange(n) % 2, -2, 2)
    x[12, 1:] = 0
    x[13] = np.arange(n) / 2 - 16
    x[14] = np.arange(n) + 0.5
    x[15] = -abs(x[15])
    x[16:80] = r.integers(-130, 131, (64, n)) / 4
    return x.astype(np.float32)


def main(kind, out):
    x = rows()
    x.tofile(os.path.join(out, "in"))
    with np.errstate(all="ignore"):
        quantize(x, gguf.GGMLQuantizationType[kind]).tofile(os.path.join(out, "out"))


main(*sys.argv[1:])
