"""Block quantizers (src/ir/quant/qblock_encode.c) compared with the gguf package, byte for byte, on random and extreme rows."""
import os
from lib.core import ROOT, Fail, Skip, Test, explain, run, want

KINDS = ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0")


def encode(env, kind):
    out = env.scratch("quantizers", kind)
    env.lm_script("quantize.py", kind, out)
    data, expected = (open(os.path.join(out, name), "rb").read() for name in ("in", "out"))
    env.make("asan")
    for build in ("build", "build-asan"):
        tool = os.path.join(ROOT, build, "unit", "ir_block_encode")
        if not os.path.exists(tool):
            raise Skip(f"{build}/unit is not built")
        got = run([tool, kind], 20, stdin=data)
        if got.rc:
            raise Fail(explain(got) + got.text())
        wrong = [i for i, (a, b) in enumerate(zip(got.out, expected)) if a != b]
        want(len(got.out) == len(expected) and not wrong, f"{build}: {len(got.out)} bytes of {len(expected)}, {len(wrong)} differ, the first is {wrong[:1]}")


def tests(env):
    return [Test(f"quantizers/{kind}", lambda k=kind: encode(env, k), 0.5) for kind in KINDS]
