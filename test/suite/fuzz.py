"""Every fuzz target under ASan and UBSan: earlier findings, then a fixed number of runs; `make fuzz` runs for longer."""
import glob
import importlib.util
import os
import shutil
from lib.core import ROOT, Fail, Skip, Test

RUNS = {"fuzz_reader": 250000, "fuzz_import": 1600, "fuzz_tflite": 2500, "fuzz_npz": 120000, "fuzz_gguf": 50000, "fuzz_safetensors": 60000, "fuzz_json": 120000, "fuzz_lang": 25000, "fuzz_native": 1000, "fuzz_vocab": 5000, "fuzz_graph": 25000, "fuzz_prog": 25000, "fuzz_igb": 25000}

spec = importlib.util.spec_from_file_location("fuzzing", os.path.join(ROOT, "test", "fuzz.py"))
fuzzing = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fuzzing)


def smoke(env, target):
    if not shutil.which("clang") or not glob.glob("/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*"):
        raise Skip("clang with libFuzzer is not installed")
    env.make("fuzz-smoke")
    done, finding = fuzzing.smoke(target, RUNS[target])
    if finding:
        raise Fail(f"after {done} runs: {finding}")
    if done < RUNS[target]:
        raise Fail(f"only {done} runs of {RUNS[target]}")


def tests(env):
    return [Test(f"fuzz/{t}", lambda t=t: smoke(env, t), cost=80) for t in fuzzing.targets()]
