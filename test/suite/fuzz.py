"""A short run of every fuzz target under ASan+UBSan; `make fuzz` is the campaign."""
import glob
import importlib.util
import os
import shutil
from lib.core import ROOT, Fail, Skip, Test

SECONDS = {"fuzz_reader": 60}  # others: 20

spec = importlib.util.spec_from_file_location("fuzzing", os.path.join(ROOT, "test", "fuzz.py"))
fuzzing = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fuzzing)


def smoke(env, target):
    if not shutil.which("clang") or not glob.glob("/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*"):
        raise Skip("clang with libFuzzer is not installed")
    env.make("fuzz-programs")
    seconds = SECONDS.get(target, 20)
    done, finding = fuzzing.campaign(target, 0, seconds, 1)
    if finding:
        raise Fail(f"after {done} runs: {finding}")
    if done < seconds * fuzzing.LEAST_PER_SECOND:
        raise Fail(f"only {done} runs in {seconds} s")


def tests(env):
    return [Test(f"fuzz/{t}", lambda t=t: smoke(env, t), cost=SECONDS.get(t, 20) + 60) for t in fuzzing.targets()]
