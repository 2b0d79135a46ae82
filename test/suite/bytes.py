"""Quantized networks (test/make/mkbytes.py) for each target: C, vm and ref equal to the bit, ONNX Runtime within one step.

The pass quant turns what is between DequantizeLinear and QuantizeLinear into integer arithmetic, so `ref` runs the graph after
that pass.
Where floats remain, sums may have another order.
"""
import os

from lib import cpu
from lib.core import Fail, Test, explain, run, tail
from suite.targets import TARGETS

NETS = ("pointwise16", "pointwise27", "pointwise-signed", "pointwise-u8u8", "pointwise-wide", "windows3", "windows3-stride", "windows7",
        "windows32", "windows18-signed", "windows-dilated", "windows1", "depthwise32", "depthwise19", "depthwise-signed", "grouped", "narrow", "narrow-signed", "multiplied", "multiplied-signed", "matmul",
        "matmul-odd", "matmul-row", "matmul-signed", "matmul-u8u8", "matmulinteger", "matmulinteger-signed", "qgemm", "convinteger",
        "convinteger-signed", "pairs16", "pairs12", "patches24", "patches-signed", "patches-u8u8", "patches-long", "patches-dynamic", "activations",
        "activations-signed")
FLOATS = ("pairs16", "pairs12")  # their last product has a bias in f32
TABLES = ("activations", "activations-signed")  # functions whose last bit may differ between targets
DOT4 = ("pointwise16", "pointwise27", "pointwise-signed", "pointwise-u8u8", "windows3", "windows7", "windows32", "matmul", "matmul-row",
        "matmulinteger", "qgemm", "convinteger", "pairs16")
ROW = ("matmul-row",)  # weights are read once, as int8
PATCHES = {"patches24": "F(4x4)", "patches-signed": "F(4x4)", "patches-u8u8": "F(4x4)", "patches-long": "F(2x2)", "patches-dynamic": "F(4x4)"}


def folder_of(env):
    env.need_ingot()
    folder = os.path.join(env.build, "bytes")
    env.generated(folder, ["make/mkbytes.py", "requirements.txt"], lambda: env.script("mkbytes.py", folder))
    return folder


def result(env, folder, net, engine, target):
    out = os.path.join(folder, f"{net}-{engine}-{target}.npz")
    got = run([env.ingot, "run", os.path.join(folder, net + ".onnx"), "--data", os.path.join(folder, net), "-o", out, "--engine", engine,
               "--march", target], 120)
    if got.rc:
        raise Fail(f"{engine} for {target}: {explain(got)}: {tail(got.text(), 4)}")
    with open(out, "rb") as f:
        return f.read()


def check(env, net):
    folder = folder_of(env)
    first = None if net in FLOATS + TABLES else result(env, folder, net, "ref", "scalar")
    for target in ("scalar", *TARGETS):
        if not cpu.can_run(target):
            continue
        if net in FLOATS + TABLES:
            first = result(env, folder, net, "c", target)
        for engine in ("vm", "c"):
            if result(env, folder, net, engine, target) != first:
                raise Fail(f"{engine} for {target} differs in its bits")
    near = ["--rtol", "1e-5", "--atol", "1e-4"] if net in FLOATS else ["--rtol", "0", "--atol", "1"]
    got = run([env.ingot, "verify", os.path.join(folder, net + ".onnx"), "--data", os.path.join(folder, net), "--engine", "vm",
               "--march", "avx2", *near], 120)
    if got.rc:
        raise Fail(f"against ONNX Runtime: {explain(got)}: {tail(got.out.decode() + got.text(), 4)}")


def family(env, net):
    """Products are summed four at a time where the CPU has such an instruction, else two at a time; never one by one."""
    for target, word in (("avx512", "dot_i8x4("), ("avx2", "dot_i8x4(" if net in ROW else "dot_i16x2(")):
        got = run([env.ingot, "opt", os.path.join(folder_of(env), net + ".onnx"), "--march", target, "--stop=lower"], 60)
        if got.rc or word.encode() not in got.out:
            raise Fail(f"no {word}) in the program for {target}: {explain(got)}")


def patches(env, net):
    """Winograd's method on integers, with the largest patches whose sums fit."""
    got = run([env.ingot, "opt", os.path.join(folder_of(env), net + ".onnx"), "--march", "avx2", "--explain"], 60)
    if got.rc or f"Winograd {PATCHES[net]}" not in got.out.decode():
        raise Fail(f"no Winograd {PATCHES[net]}: {explain(got)}")


def tables(env, net):
    """A function of one int8 value becomes a lookup table."""
    got = run([env.ingot, "opt", os.path.join(folder_of(env), net + ".onnx"), "--march", "avx2", "--explain"], 60)
    if got.rc or "': lookup table of" not in got.out.decode():
        raise Fail(f"no table: {explain(got)}")


def tests(env):
    return ([Test(f"bytes/{n}", lambda n=n: check(env, n), cost=10) for n in NETS] +
            [Test(f"bytes/family-{n}", lambda n=n: family(env, n)) for n in DOT4] +
            [Test(f"bytes/patches-{n}", lambda n=n: patches(env, n)) for n in PATCHES] +
            [Test(f"bytes/table-{n}", lambda n=n: tables(env, n)) for n in TABLES])
