#!/usr/bin/env python3
"""Runs llama.cpp on one model for bench/llm.py, in its own process, with the Python of build/bench-lm.

    bench/llama.py time MODEL THREADS off|on PAST,..    one JSON object: tokens/s of a prompt of 512 tokens, and of decoding after that many positions
    bench/llama.py nll MODEL TEXT                       mean negative log-likelihood, the text at once and token by token
    bench/llama.py about MODEL                          version, and the CPU features that it was built for

off, on: flash attention. The token ids, counts and rounds are those of `ingot bench`: the median of three rounds of 32 tokens, after a short
warm-up prompt. Decoding starts with a cache full of real positions. Only the logits of the last prompt token are computed.
"""
import ctypes
import json
import statistics
import sys
import time

import llama_cpp as L
import numpy as np

PROMPT, TOKENS, ROUNDS, WARM = 512, 32, 3, 64
QUIET = L.llama_log_callback(lambda level, text, data: None)


class Session:
    def __init__(self, path, threads, flash, context):
        L.llama_log_set(QUIET, ctypes.c_void_p(0))
        L.llama_backend_init()
        self.model = L.llama_model_load_from_file(path.encode(), L.llama_model_default_params())
        if not self.model:
            sys.exit(f"llama.cpp cannot read {path}")
        p = L.llama_context_default_params()
        p.n_ctx, p.n_batch, p.n_ubatch, p.n_threads, p.n_threads_batch = context, PROMPT, PROMPT, threads, threads
        p.flash_attn_type = L.LLAMA_FLASH_ATTN_TYPE_ENABLED if flash else L.LLAMA_FLASH_ATTN_TYPE_DISABLED
        self.ctx = L.llama_init_from_model(self.model, p)
        if not self.ctx:
            sys.exit(f"llama.cpp has no context for {path}")
        self.vocab = L.llama_model_get_vocab(self.model)
        self.size = L.llama_vocab_n_tokens(self.vocab)

    def rewind(self, n):
        L.llama_memory_seq_rm(L.llama_get_memory(self.ctx), -1, n, -1)

    def feed(self, ids):
        array = (L.llama_token * len(ids))(*ids)
        if L.llama_decode(self.ctx, L.llama_batch_get_one(array, len(ids))):
            sys.exit("llama.cpp cannot decode")
        L.llama_synchronize(self.ctx)

    def made_up(self, begin, end):
        return [i * 2654435761 % self.size for i in range(begin, end)]

    def fill(self, begin, end):
        self.rewind(begin)
        for at in range(begin, end, PROMPT):
            self.feed(self.made_up(at, min(at + PROMPT, end)))

    def seconds(self, past, n, each):
        times, ids = [], self.made_up(past, past + n)
        for _ in range(ROUNDS):
            self.rewind(past)
            begin = time.perf_counter()
            for at in range(0, n, each):
                self.feed(ids[at:at + each])
            times.append(time.perf_counter() - begin)
        return statistics.median(times)

    def logits(self, i):
        return np.ctypeslib.as_array(L.llama_get_logits_ith(self.ctx, i), (self.size,)).astype(np.float64)


def measure(path, threads, flash, pasts):
    s = Session(path, int(threads), flash == "on", max(pasts) + PROMPT + TOKENS)
    s.seconds(0, WARM, WARM)
    out, known = {"prefill_tokens_per_s": PROMPT / s.seconds(0, PROMPT, PROMPT), "decode": []}, 0
    for past in pasts:
        s.fill(known, past)
        out["decode"].append({"past": past, "tokens_per_s": TOKENS / s.seconds(past, TOKENS, 1)})
        known = past
    return out


def surprise(row, follows):
    top = row.max()
    return float(top + np.log(np.exp(row - top).sum()) - row[follows])


def likelihood(path, text):
    s = Session(path, 2, False, PROMPT)
    ids, raw = (L.llama_token * PROMPT)(), text.encode()
    n = L.llama_tokenize(s.vocab, raw, len(raw), ids, PROMPT, False, False)
    batch = L.llama_batch_init(n, 0, 1)
    batch.n_tokens = n
    for i in range(n):
        batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0], batch.logits[i] = ids[i], i, 1, 0, 1
    if L.llama_decode(s.ctx, batch):
        sys.exit("llama.cpp cannot decode")
    whole = sum(surprise(s.logits(i), ids[i + 1]) for i in range(n - 1)) / (n - 1)
    s.rewind(0)
    each = 0.0
    for i in range(n - 1):
        s.feed([ids[i]])
        each += surprise(s.logits(-1), ids[i + 1]) / (n - 1)
    return {"tokens": n - 1, "nll": whole, "nll_by_token": each}


def main(what, *args):
    if what == "about":
        return {"version": L.__version__, "built": L.llama_print_system_info().decode().strip(" |")}
    if what == "nll":
        return likelihood(*args)
    return measure(*args[:3], [int(x) for x in args[3].split(",")])


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
