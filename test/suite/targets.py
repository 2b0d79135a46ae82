"""Whole networks for each target with vectors: C equal to interp to the bit, and to ONNX Runtime within rounding."""
import os
import re

from lib import cpu
from lib.core import Fail, Test, explain, run, tail

NETS = ("mobile24", "mobile21", "dense32", "dense272", "grouped", "narrow", "dilated", "cut", "few", "holes", "widened", "pools", "tied", "attention", "forest")
TARGETS = ("sse2", "avx2", "avx512")
HALVES = ("mobile21-float16", "attention-float16", "attention-bfloat16", "pools-bfloat16")
NEAR = {"float16": 1e-3, "bfloat16": 8e-3}  # what the result is rounded by; of 24 bits, F(4x4) costs about two
SLOW = {"dense272"}  # too much for the interpreter: C only


def prepare(env, net):
    """The model and the folder of its data."""
    env.need_ingot()
    folder = os.path.join(env.build, "targets")
    env.generated(folder, ["make/mktargets.py", "requirements.txt"], lambda: env.script("mktargets.py", folder))
    return os.path.join(folder, net + ".onnx"), os.path.join(folder, net)


def largest(data):
    with open(os.path.join(data, "largest")) as f:
        return float(f.read())


def check(env, net, target):
    cpu.need(target)
    model, data = prepare(env, net)
    near = largest(data) * NEAR.get(net.rpartition("-")[2], 2e-5)
    got = run([env.ingot, "verify", model, "--data", data, "--engine", "c", "--march", target, "--rtol", "0",
               "--atol", f"{near:g}"], 120)
    if got.rc:
        raise Fail(f"C against ONNX Runtime: {explain(got)}: {tail(got.out.decode() + got.text(), 4)}")
    if net in SLOW:
        return
    results = []
    for engine in ("c", "interp"):
        out = os.path.join(data, f"{target}-{engine}.npz")
        got = run([env.ingot, "run", model, "--data", data, "-o", out, "--engine", engine, "--march", target], 120)
        if got.rc:
            raise Fail(f"{engine}: {explain(got)}: {tail(got.text(), 4)}")
        with open(out, "rb") as f:
            results.append(f.read())
    if results[0] != results[1]:
        raise Fail("C and interp differ in their bits")


def precise(env, target):
    """--precise leaves Winograd F(4x4) out: what it costs is more than this."""
    cpu.need(target)
    model, data = prepare(env, "dense32")
    for args, fits in (([], False), (["--precise"], True)):
        got = run([env.need_ingot(), "verify", model, "--data", data, "--engine", "c", "--march", target, "--rtol", "0", "--atol",
                   f"{largest(data) * 7e-7:g}", *args], 120)
        if (got.rc == 0) != fits or got.rc not in (0, 1):
            raise Fail(f"{args}: {explain(got)}: {tail(got.out.decode() + got.text(), 4)}")


def weights(env):
    """Weights of a network of halves take 16 bits each, not those of f32."""
    size = {}
    for net in ("attention", "attention-float16"):
        model, data = prepare(env, net)
        out = os.path.join(data, "w.c")
        got = run([env.ingot, "compile", model, "--march", "avx2", "--quiet", "-o", out], 60)
        if got.rc:
            raise Fail(f"{net}: {explain(got)}: {tail(got.text(), 4)}")
        with open(out[:-1] + "h") as f:
            size[net] = int(re.search(r"_WEIGHT_BYTES (\d+)", f.read()).group(1))
    if size["attention-float16"] > 0.6 * size["attention"]:
        raise Fail(f"bytes of weights: {size}")


def tests(env):
    return [Test("targets/precise", lambda: precise(env, "avx2"), cost=5), Test("targets/weights", lambda: weights(env), cost=2)] + [
        Test(f"targets/{n}-{t}", lambda n=n, t=t: check(env, n, t), cost=10) for n in NETS + HALVES for t in TARGETS
            if n in HALVES or t != "sse2" or n in ("mobile21", "dilated", "widened", "cut", "few", "pools", "tied", "attention", "forest")]
