#!/usr/bin/env python3
"""Writes GGUF decoders with the shapes of known models and random weights, for bench/llm.py. Runs with the Python of build/lm.

    bench/mkllm.py NAME KIND FILE [SHARE [LAYERS]]     NAME: llama-3.2-1b or qwen3-0.6b; KIND: Q4_0, Q8_0, Q6_K, Q4_K_M or F16

The files have 1 / SHARE of the layers and of the vocabulary (a quarter by default), so that all parts keep their share of time and
bytes. They reach about SHARE times the tokens per second of the whole model. LAYERS overrides the number of layers. Blocks are random bytes with small scales: how long products take does not depend on values, and norms keep them finite. As in files of
llama.cpp, the embedding (which is the output as well) is Q6_K unless all is Q8_0 or F16, and Q4_K_M has Q6_K in some layers.
"""
import sys

import gguf
import numpy as np

SHARE, LAYERS = [int(x) for x in (sys.argv[4:] + ["4", "0"][len(sys.argv[4:]):])]
# architecture, embedding, layers, heads, KV heads, head size, feed-forward size, vocabulary, RoPE base
MODELS = {"llama-3.2-1b": ("llama", 2048, 16, 32, 8, 64, 8192, 128256, 500000.0),
          "qwen3-0.6b": ("qwen3", 1024, 28, 16, 8, 128, 3072, 151936, 1000000.0)}
# offsets of the f16 scales of a block, and their magnitude
SCALES = {"Q4_0": ((0,), 4e-3), "Q8_0": ((0,), 4e-4), "Q6_K": ((208,), 1e-5), "Q4_K": ((0, 2), 5e-5)}


def byte_names():
    """The printable characters that stand for bytes in byte-level vocabularies."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    odd = iter(range(256, 512))
    return [chr(b if b in plain else next(odd)) for b in range(256)]


class Writer:
    def __init__(self, path, arch):
        self.w, self.rng = gguf.GGUFWriter(path, arch), np.random.default_rng(3)

    def blocks(self, name, rows, columns, kind):
        if kind == "F16":
            some = (self.rng.standard_normal(65521) * 2e-2).astype(np.float16)
            self.w.add_tensor(name, np.resize(some, (rows, columns)))
            return
        halves, scale = SCALES[kind]
        elements, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
        some = self.rng.integers(0, 256, (4099, size), np.uint8)
        for at in halves:
            some[:, at:at + 2] = (self.rng.standard_normal(4099) * scale).astype(np.float16)[:, None].view(np.uint8)
        data = np.resize(some, (rows, columns // elements * size))
        self.w.add_tensor(name, data, raw_dtype=gguf.GGMLQuantizationType[kind])

    def ones(self, name, n):
        self.w.add_tensor(name, np.ones(n, np.float32))


def more_bits(layer, layers):
    return layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2


def header(w, model):
    _, embed, layers, heads, kv, head, inner, vocab, base = model
    w.add_block_count(LAYERS or layers // SHARE)
    w.add_context_length(8192)
    w.add_embedding_length(embed)
    w.add_feed_forward_length(inner)
    w.add_head_count(heads)
    w.add_head_count_kv(kv)
    w.add_key_length(head)
    w.add_value_length(head)
    w.add_rope_dimension_count(head)
    w.add_rope_freq_base(base)
    w.add_layer_norm_rms_eps(1e-5)
    tokens = ["<end>", *byte_names()]
    tokens += [f"t{i}" for i in range(len(tokens), vocab // SHARE - 1)] + ["ab"]
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("gpt-2")
    w.add_token_list(tokens)
    w.add_token_types([gguf.TokenType.CONTROL] + [gguf.TokenType.NORMAL] * (len(tokens) - 1))
    w.add_token_merges(["a b"])
    w.add_eos_token_id(0)
    w.add_add_bos_token(False)


def layer(out, i, model, kind, better):
    arch, embed, _, heads, kv, head, inner, _, _ = model
    at = f"blk.{i}."
    for name, rows, columns, k in (("attn_q", heads * head, embed, kind), ("attn_k", kv * head, embed, kind), ("attn_v", kv * head, embed, better),
                                   ("attn_output", embed, heads * head, kind), ("ffn_gate", inner, embed, kind), ("ffn_up", inner, embed, kind),
                                   ("ffn_down", embed, inner, better)):
        out.blocks(at + name + ".weight", rows, columns, k)
    out.ones(at + "attn_norm.weight", embed)
    out.ones(at + "ffn_norm.weight", embed)
    if arch == "qwen3":
        out.ones(at + "attn_q_norm.weight", head)
        out.ones(at + "attn_k_norm.weight", head)


def main(name, kind, path):
    model = MODELS[name]
    plain = "Q4_K" if kind == "Q4_K_M" else kind
    layers = LAYERS or model[2] // SHARE
    out = Writer(path, model[0])
    header(out.w, model)
    out.blocks("token_embd.weight", model[7] // SHARE, model[1], kind if kind in ("Q8_0", "F16") else "Q6_K")
    out.ones("output_norm.weight", model[1])
    for i in range(layers):
        layer(out, i, model, plain, "Q6_K" if kind == "Q4_K_M" and more_bits(i, layers) else plain)
    out.w.write_header_to_file()
    out.w.write_kv_data_to_file()
    out.w.write_tensors_to_file()
    out.w.close()


main(*sys.argv[1:4])
