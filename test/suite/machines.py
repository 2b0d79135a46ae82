"""Older CPUs: an emulator of an older CPU runs ingot and the programs it builds.

CPU detection by ingot and by files with several variants gives the same results as INGOT_NATIVE on a newer CPU.
`INGOT_NATIVE=avx2 EMULATOR="qemu-x86_64 -cpu Haswell" test/run PATTERN` runs any other test so.
"""
import os

from lib import npy
from lib.core import ROOT, Fail, Skip, Test, explain, must, need, run, tail
from suite import bytes as quantized
from suite import targets

DIGITS = [os.path.join(ROOT, "models", "digits.onnx"), "-d", "batch=1"]
CPUS = {"avx2": "Haswell-noTSX,-pcid,-x2apic,-tsc-deadline,-invpcid", "sse2": "core2duo"}  # without the warnings of the emulator


def emulator(target):
    if os.uname().machine != "x86_64":
        raise Skip("the bodies are for x86-64")
    return [need("qemu-x86_64"), "-cpu", CPUS[target]]


def outputs(cmd, path, what, env=None):
    must([*cmd, "--seed", "5", "--output", path], what, env=env)
    return npy.load_npz_raw(path)


def models(env):
    return {"digits": DIGITS, "bytes": [os.path.join(quantized.folder_of(env), "windows3.onnx")], "attention": [targets.prepare(env, "attention")[0]]}


def found(env, target):
    """ingot on the older CPU: native is its target."""
    before, work = emulator(target), env.scratch("machines", target)
    for name, model in models(env).items():
        want = outputs([env.need_ingot(), "run", *model, "--march", target], os.path.join(work, "want.npz"), name)
        for what, cmd, around in (("emulated", [*before, env.ingot], {}), ("named", [env.ingot], {"INGOT_NATIVE": target})):
            if outputs([*cmd, "run", *model, "--march", "native"], os.path.join(work, what + ".npz"), f"{name}, {what}", around) != want:
                raise Fail(f"{name}, {what}: native is not {target}")
        march = "native" if name == "bytes" else "multi"  # code in the same process
        if name != "attention" and outputs([*before, env.ingot, "run", *model, "--march", march, "--engine", "c"], os.path.join(work, "c.npz"),
                                           f"{name}, {march} in C", {"INGOT_NATIVE": target}) != want:
            raise Fail(f"{name}: C for {march} gives other bits than {target}")


def programs(env, target):
    """Programs built on this machine: a file with several variants selects one by the CPU, and INGOT_NATIVE limits the
    selection."""
    before, work = emulator(target), env.scratch("machines", "programs-" + target)

    def build(name, model, march, made, around):
        must([env.ingot, "build", *model, "--march", march, "--quiet", "--no-selftest", "-O1", "-o", made], f"{name}, {march}", env=around)
        return made
    for name, model in models(env).items():
        want = outputs([env.need_ingot(), "run", *model, "--march", target], os.path.join(work, "want.npz"), name)
        if name == "attention":  # the slowest
            made = build(name, model, "native", os.path.join(work, name), {"INGOT_NATIVE": target})
        else:
            made = env.once("program of many bodies, " + name, lambda: build(name, model, "multi", os.path.join(env.scratch("machines"), name), {}))
        if outputs([*before, made], os.path.join(work, "out.npz"), f"{name}, emulated") != want:
            raise Fail(f"{name}: other bits than {target}")


def refused(env):
    for value, args, words in (("avx9", ["compile", "--march", "native"], "unknown target"), ("avx2", ["run", "--march", "avx512", "--engine", "c"], "does not run"),
                               ("sse2", ["bench", "--march", "avx2"], "does not run")):
        got = run([env.need_ingot(), args[0], *DIGITS, *args[1:]], 60, env={"INGOT_NATIVE": value})
        if got.rc != 2 or words not in got.text():
            raise Fail(f"INGOT_NATIVE={value} {args}: {explain(got)}: {tail(got.text(), 3)}")


def tests(env):
    return [Test("machines/refused", lambda: refused(env)),
            *[Test(f"machines/{fn.__name__}-{t}", lambda fn=fn, t=t: fn(env, t), cost=10) for fn in (found, programs) for t in CPUS]]
