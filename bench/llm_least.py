#!/usr/bin/env python3
"""Compares ingot with llama.cpp: minimum CPU time of a 512-token prompt and of one more token, in turn in one process on one thread.

    build/bench-lm/bin/python bench/llm_least.py MODEL.gguf.. [--march native] [--ingot PATH,..] [--turns 5] [--past 16,512] [--no-prompt]
    build/bench-lm/avx2/bin/python bench/llm_least.py MODEL.gguf.. --march avx2       llama.cpp built for AVX2

Meant for busy machines: CPU time excludes the time of other processes, and the minimum of many turns is disturbed least. An idle
machine is still faster, because caches and memory are shared. Tokens are those of bench/llama.py; llama.cpp runs with and without flash
attention, and the better figure counts. Several --ingot compare versions. --past: 512 at most; --no-prompt: the prompt is not measured,
and run once if there is one --past, which leaves time for more turns.
"""
import argparse
import ctypes
import os
import re
import subprocess
import tempfile
import time

import llama

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROMPT, DECODED = 512, 8  # tokens of a turn


class Ingot:
    """The model as a library, with the functions that bench/llama.py calls on a session."""

    def __init__(self, ingot, model, march, context, folder):
        base = tempfile.mkdtemp(dir=folder)
        subprocess.run([ingot, "build", model, "-o", base + "/m.so", "--name", "m", "--quiet", "--march", march, "--context", str(context)], check=True)
        with open(base + "/m.h", encoding="utf-8") as f:
            d = dict(re.findall(r"^#define M_(ARENA_BYTES|VOCAB) (\d+)", f.read(), re.M))
        self.size, self.lib = int(d["VOCAB"]), ctypes.CDLL(base + "/m.so")
        raw = ctypes.create_string_buffer(int(d["ARENA_BYTES"]) + 64)
        self.kept = raw
        self.arena = ctypes.c_void_p((ctypes.addressof(raw) + 63) // 64 * 64)
        self.logits = (ctypes.c_float * self.size)()
        self.lib.m_reset(self.arena)
        os.remove(base + "/m.so")

    def rewind(self, n):
        if self.lib.m_rewind(self.arena, ctypes.c_int64(n)):
            raise RuntimeError(f"there are no {n} tokens to go back to")

    def feed(self, ids):
        if self.lib.m_prefill(self.arena, (ctypes.c_int32 * len(ids))(*ids), ctypes.c_size_t(len(ids)), self.logits):
            raise RuntimeError("the model refused to run")

    def made_up(self, begin, end):
        return [i * 2654435761 % self.size for i in range(begin, end)]


def took(s, past, n, each):
    """CPU time of n tokens after `past` tokens in the cache."""
    ids = s.made_up(past, past + n)
    s.rewind(past)
    begin = time.process_time()
    for at in range(0, n, each):
        s.feed(ids[at:at + each])
    return (time.process_time() - begin) / n


def measure(model, a, folder):
    pasts = sorted((int(x) for x in a.past.split(",")), reverse=True)  # tokens after the prompt are still in the cache
    context = PROMPT + 64
    who = {f"{os.path.basename(x)}": Ingot(x, model, a.march, context, folder) for x in a.ingot.split(",")}
    who.update({f"llama.cpp {flash}": llama.Session(model, 1, flash == "flash", context) for flash in ("plain", "flash")})
    least, rows = {}, (*(() if a.no_prompt else ("prompt",)), *pasts)
    for turn in range(a.turns):
        if a.no_prompt and (turn == 0 or len(pasts) > 1):
            for s in who.values():
                s.rewind(0)
                s.feed(s.made_up(0, PROMPT))
        for past in rows:
            for k, s in who.items():
                if past == "prompt":
                    spent = took(s, 0, PROMPT, PROMPT)
                else:
                    spent = took(s, past, DECODED, 1)
                least[past, k] = min(least.get((past, k), spent), spent)
    for past in rows:
        peer = min(least[past, k] for k in who if k.startswith("llama.cpp"))
        ours = "  ".join(f"{k} {1 / least[past, k]:.1f} ({peer / least[past, k]:.2f}x)" for k in who if not k.startswith("llama.cpp"))
        print(f"{os.path.basename(model)[:-5]:24} {past if past == 'prompt' else f'behind {past}':12} llama.cpp {1 / peer:.1f}  {ours}", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("models", nargs="+")
    p.add_argument("--march", default="native")
    p.add_argument("--ingot", default=os.environ.get("INGOT", os.path.join(ROOT, "build", "ingot")))
    p.add_argument("--turns", type=int, default=5)
    p.add_argument("--past", default="16,512")
    p.add_argument("--no-prompt", action="store_true")
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for model in a.models:
            measure(model, a, folder)


if __name__ == "__main__":
    main()
