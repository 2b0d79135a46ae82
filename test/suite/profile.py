"""Time by kernel: `bench --per-kernel`, and --profile, with which a file calls a user function after every kernel."""
import json
import os
import re

from lib.core import ROOT, Fail, Test, explain, must, need, run, tail
from suite import gate, multi

MAIN = """#include "net.h"
#include <stdio.h>
#include <string.h>
static int seen[NET_KERNELS], calls, begun;
void net_profile(int kernel) {
  if (kernel < 0) {
    begun++;
    return;
  }
  seen[kernel]++;
  if (begun != 1 || kernel != calls++) printf("kernel %d is number %d of run %d\\n", kernel, calls, begun);
}
static union { unsigned char at[NET_ARENA_BYTES]; long double align; } room[3];
static float in[NET_INPUT0_ELEMENTS], out[NET_OUTPUT0_ELEMENTS];
int main(void) {
  unsigned char *arena = room[0].at + 64 - (size_t)room[0].at % 64;
  RESET
  int status = net_run(arena, in, out);
  printf("%d %d\\n", status, calls);
  for (int k = 0; k < calls; k++) printf("%s\\n", net_kernel_name(k));
  return strcmp(net_kernel_name(NET_KERNELS), net_kernel_name(-1));
}
"""


def hook(env):
    """The callback runs once per kernel, in order; the file stores nothing, and has no callback without the option."""
    env.need_ingot()
    work = env.scratch("profile", "hook")
    state = os.path.join(work, "cell.ing")
    with open(state, "w") as f:
        f.write(multi.CELL)
    cases = [(multi.DIGITS, ["--march", "scalar"], "tcc", [], ""), (multi.DIGITS, ["--march", "multi"], "gcc", gate.STRICT, ""),
             (multi.DIGITS, ["--march", "avx2", "--threads", "2", "--threads-grain", "1"], "clang", [*gate.STRICT, "-pthread"], ""),
             ([state], ["--march", "sse2"], "gcc", gate.STRICT, "net_reset(arena);")]
    for model, options, cc, flags, reset in cases:
        need(cc)
        must([env.ingot, "compile", *model, *options, "--profile", "--name", "net", "-o", os.path.join(work, "net.c")], "compile")
        with open(os.path.join(work, "main.c"), "w") as f:
            f.write(MAIN.replace("RESET", reset))
        gate.built(work, cc, *flags)
        lines = must([os.path.join(work, "main")], "run").splitlines()
        status, calls = lines[0].split()
        if status != "0" or int(calls) < 2 or len(lines) != int(calls) + 1 or not all(lines):
            raise Fail(f"{model[0]} {options}: {lines}")
        # tcc has no section for constants
        data = must(["nm", os.path.join(work, "net.o")], "nm")
        if cc != "tcc" and [line for line in data.splitlines() if line.split()[-2] in "dDbBC"]:
            raise Fail(f"a file that tells of its kernels stores something:\n{data}")
    for macro in ("net_profile", "other"):  # a macro replaces the function
        got = run(["gcc", "-c", f"-DNET_PROFILE(k)={macro}(k)", "-Dother(k)=(void)(k)", "-o", os.path.join(work, "net.o"),
                   os.path.join(work, "net.c")], 60)
        names = must(["nm", os.path.join(work, "net.o")], "nm")
        if got.rc or ("U net_profile" in names) != (macro == "net_profile"):
            raise Fail(f"NET_PROFILE as {macro}: {explain(got)}: {tail(got.text())}\n{names}")
    plain = must([env.ingot, "compile", *multi.DIGITS, "--name", "net"], "compile")
    if "PROFILE" in plain or "kernel_name" in plain:
        raise Fail("a file that was not asked tells of its kernels")


def table(env):
    """The kernel figures of bench are consistent: shares, and the multiply-adds of the model."""
    env.need_ingot()
    model = os.path.join(ROOT, "models", "digits.onnx")
    bench = [env.ingot, "bench", model, "-d", "batch=1", "--per-kernel", "--seconds", "0.05", "--quiet"]
    got = json.loads(must([*bench, "--march", "scalar", "--json"], "bench"))
    kernels = got[0]["kernels"]
    if len(got) != 1 or abs(sum(k["share"] for k in kernels) - 1) > 0.01 or got[0]["peak_gflops"] <= 0:
        raise Fail(f"the shares do not add up, or there is no peak: {got}")
    macs = json.loads(must([env.ingot, "inspect", model, "-d", "batch=1", "--json"], "inspect"))["multiply_adds"]
    if sum(k["multiply_adds"] for k in kernels) != macs:
        raise Fail(f"kernels do {sum(k['multiply_adds'] for k in kernels)} multiply-adds, the model has {macs}")
    if sorted(kernels[0]) != ["bytes", "calls", "gbps", "gflops", "ms", "multiply_adds", "peak_share", "share", "values"]:
        raise Fail(f"keys: {kernels[0]}")
    if not any("conv2" in k["values"] and k["bytes"] > 0 and k["calls"] == 1 for k in kernels):
        raise Fail(f"no kernel for conv2: {kernels}")
    strips = json.loads(must([*bench, "--march", "scalar", "--threads", "2", "--threads-grain", "1", "--json"], "bench"))[0]["kernels"]
    if sum(k["multiply_adds"] for k in strips) != macs:
        raise Fail(f"kernels of two threads do {sum(k['multiply_adds'] for k in strips)} multiply-adds, the model has {macs}")
    text = must([*bench, "--march", "multi", "--threads", "2", "--threads-grain", "1"], "bench")
    if "of peak" not in text or "conv2" not in text or "kernels; peak of this machine" not in text:
        raise Fail(f"no table of kernels:\n{text}")
    if "in f32" not in text or "%" not in text.split("conv2")[0].splitlines()[-1]:
        raise Fail(f"floats are not set beside the peak of floats:\n{text}")
    head = text.splitlines()
    if "runs/s" not in head[1] or not re.search(r", 2, .*-O2$", head[2]):
        raise Fail(f"no header with threads, throughput, target and compiler:\n{text}")
    rows = [float(row.split()[1]) for row in head if re.match(r" *\d+ +\d+\.\d{5} +\d", row)]
    if len(rows) < 4 or rows != sorted(rows, reverse=True):
        raise Fail(f"kernels are not listed by descending time:\n{text}")
    shares = [float(share) for share in re.findall(r"(\d+\.\d)%", text)]
    if max(shares) > 100:
        raise Fail(f"a share of {max(shares)} %:\n{text}")
    whole = os.path.join(env.scratch("profile", "whole"), "digits8.onnx")
    must([env.ingot, "quantize", model, "--data", os.path.join(ROOT, "models", "digits.npz"), "-o", whole, "--quiet"], "quantize")
    layers = {"conv1": 72 * 64, "conv2": 72 * 16 * 64, "fc": 2560}
    for march in ("scalar", "sse2"):  # contractions; operators composed of several
        kernels = json.loads(must([env.ingot, "bench", whole, "-d", "batch=1", "--per-kernel", "--seconds", "0.05", "--quiet", "--march", march, "--json"], "bench"))[0]["kernels"]
        for name, least in layers.items():
            found = [k for k in kernels if re.search(rf"\b{name}\b", k["values"]) and least <= k["multiply_adds"] < 1.5 * least]
            if len(found) != 1:
                raise Fail(f"{march}: no kernel does the {least} multiply-adds of {name}: {kernels}")
            if found[0]["peak_share"] is not None:
                raise Fail(f"{march}: products of integers are set beside the peak of floats: {kernels}")
    long = os.path.join(os.path.dirname(whole), "long.ing")  # i64 is also the type of indices
    with open(long, "w") as f:
        f.write('graph (%a "a": i64[4,5], %b "b": i64[5,6]) {\n  %y: i64[4,6] = contract(%a, %b) {spec = "mk,kn->mn"}\n  return %y "y"\n}\n')
    text = must([env.ingot, "opt", long, "--explain"], "opt")
    if ", 120 multiply-adds, " not in text:
        raise Fail(f"4 x 5 x 6 products of i64 are not counted: {text}")
    refused = run([*bench, "--engine", "interp"], 60)
    if refused.rc != 2 or "cannot time kernels" not in refused.text():
        raise Fail(f"interp: {explain(refused)}: {refused.text()}")


def tests(env):
    return [Test("profile/hook", lambda: hook(env), cost=4), Test("profile/table", lambda: table(env), cost=5)]
