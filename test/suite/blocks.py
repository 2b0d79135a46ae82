"""Block formats (src/ir/blocks.def) against the gguf package, bit for bit, on random and extreme blocks. Skipped without that package."""
import os
import struct
from lib.core import ROOT, Fail, Test, explain, run

KINDS = ("BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS TQ1_0 TQ2_0 MXFP4").split()


def case(env, kind):
    """(blocks, floats as the gguf package reads them)"""
    out = env.scratch("blocks", kind)
    got = run([env.need_lm(), os.path.join(ROOT, "test", "make", "blocks.py"), kind, out], 60)
    if got.rc:
        raise Fail(explain(got))
    return [open(os.path.join(out, name), "rb").read() for name in ("in", "out")]


def words(data):
    """Bits of floats; every NaN is the same."""
    return [0x7fc00000 if x & 0x7fffffff > 0x7f800000 else x for x, in struct.iter_unpack("<I", data)]


def same(got, want):
    got, want = words(got), words(want)
    if len(got) != len(want):
        raise Fail(f"{len(got)} floats, expected {len(want)}")
    wrong = [i for i, (a, b) in enumerate(zip(got, want)) if a != b]
    if wrong:
        raise Fail(f"{len(wrong)} of {len(want)} floats differ, the first is {wrong[0]}: {got[wrong[0]]:#x}, expected {want[wrong[0]]:#x}")


def decode(env, kind):
    data, want = case(env, kind)
    got = run([os.path.join(env.build, "unit", "ir_block"), kind], 20, stdin=data)
    if got.rc:
        raise Fail(explain(got))
    same(got.out, want)


def tests(env):
    return [Test(f"blocks/decode/{kind}", lambda k=kind: decode(env, k), 0.5) for kind in KINDS]
