"""Writes GGUF files to quantize, and checks what `ingot quantize` wrote; with the packages gguf and numpy.

usage: mkquant.py make DIR               writes DIR/wide.gguf, DIR/parts-0000N-of-00002.gguf (the same in two files),
DIR/nan.gguf, DIR/large.gguf
       mkquant.py folder DIR VOCAB FILE  writes a tiny llama of safetensors with VOCAB tokens and tokenizer FILE (tokenizer.json or tokenizer.model)
       mkquant.py check SOURCE OUT NAME  prints the differences of OUT, made from SOURCE with --type NAME, from what is expected

The type of each tensor follows llama.cpp (bench/requant.py compares with it).
The bytes of simple types must equal those of the gguf package; for the others the error must be small.
"""
import json
import shutil
import sys
from pathlib import Path

import gguf
import numpy as np

LAYERS, EMBED, KV, VOCAB = 8, 256, 64, 64
EXACT = ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0")
# SNR in dB on normally distributed numbers, rounded down: a good search reaches it, a closed form does not
LEAST = {"Q2_K": 11, "Q3_K": 16, "Q4_K": 22.5, "Q5_K": 28.5, "Q6_K": 34}
NUMBER = {"F32": 0, "F16": 1, "BF16": 32, "Q4_0": 2, "Q4_1": 3, "Q5_0": 8, "Q5_1": 9, "Q8_0": 7, "Q2_K": 10, "Q3_K_S": 11, "Q3_K_M": 12, "Q3_K_L": 13,
          "Q4_K_S": 14, "Q4_K_M": 15, "Q5_K_S": 16, "Q5_K_M": 17, "Q6_K": 18}


def matrices():
    """Returns name -> rows, columns."""
    yield "token_embd.weight", (VOCAB, EMBED)
    for i in range(LAYERS):
        for part, rows, cols in (("attn_q", EMBED, EMBED), ("attn_k", KV, EMBED), ("attn_v", KV, EMBED), ("attn_output", EMBED, EMBED),
                                 ("ffn_gate", EMBED, EMBED), ("ffn_up", EMBED, EMBED), ("ffn_down", EMBED, EMBED)):
            yield f"blk.{i}.{part}.weight", (rows, cols)
    yield "output.weight", (VOCAB, EMBED)
    yield "blk.0.narrow.weight", (8, 96)
    yield "blk.0.odd.weight", (8, 40)


def write(path, change=None, **how):
    r = np.random.default_rng(5)
    w = gguf.GGUFWriter(path, "llama", **how)
    w.add_name("wide")
    w.add_context_length(64)
    w.add_embedding_length(EMBED)
    w.add_block_count(LAYERS)
    w.add_feed_forward_length(EMBED)
    w.add_head_count(4)
    w.add_head_count_kv(1)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_file_type(0)
    w.add_array("test.list", [1, 2, 3])
    w.add_array("test.words", ["a", "", "\u00e9"])
    w.add_bool("test.bool", True)
    w.add_float64("test.double", 0.1)
    for name, shape in matrices():
        x = (r.standard_normal(shape) * r.uniform(0.01, 0.1)).astype(np.float32)
        if change:
            change(name, x)
        w.add_tensor(name, x.astype(np.float16) if "attn_k" in name else x)
    for name in ("output_norm.weight", "blk.0.attn_norm.weight", "blk.0.attn_q.bias"):
        w.add_tensor(name, r.standard_normal(EMBED).astype(np.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def make(out):
    out = Path(out)

    def put(x):
        def change(name, a):
            if name == "blk.3.ffn_up.weight":
                a[7, 9] = x
        return change
    write(out / "wide.gguf")
    write(out / "parts.gguf", split_max_tensors=30)
    write(out / "nan.gguf", put(np.nan))
    write(out / "large.gguf", put(1e9))


def folder(out, vocab, tokenizer):
    from safetensors.numpy import save_file
    out, n = Path(out), 32
    config = {"model_type": "llama", "vocab_size": vocab, "hidden_size": n, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
              "intermediate_size": n, "max_position_embeddings": 32, "rms_norm_eps": 1e-5, "tie_word_embeddings": True}
    shapes = {"model.embed_tokens": (vocab, n), "model.norm": (n,), "model.layers.0.input_layernorm": (n,), "model.layers.0.post_attention_layernorm": (n,)}
    shapes |= {f"model.layers.0.self_attn.{p}_proj": (rows, n) for p, rows in (("q", n), ("k", n // 2), ("v", n // 2), ("o", n))}
    shapes |= {f"model.layers.0.mlp.{p}_proj": (n, n) for p in ("gate", "up", "down")}
    r = np.random.default_rng(3)
    save_file({name + ".weight": r.standard_normal(shape).astype(np.float16) for name, shape in shapes.items()}, out / "model.safetensors")
    (out / "config.json").write_text(json.dumps(config))
    (out / "tokenizer_config.json").write_text(json.dumps({"eos_token": "</s>", "bos_token": {"content": "<s>"}, "add_bos_token": False, "chat_template": "{{ messages[0].content }}"}))
    shutil.copy(tokenizer, out / ("tokenizer.model" if tokenizer.endswith(".model") else "tokenizer.json"))


def more(i):
    return i < LAYERS // 8 or i >= 7 * LAYERS // 8 or (i - LAYERS // 8) % 3 == 2


def by_rule(to, name):
    """Returns the type of a matrix in a mixture, if its rows fit."""
    i = int(name.split(".")[1]) if name.startswith("blk.") else 0
    base = to[:4] if "_K" in to else to
    down, value, out = "ffn_down" in name, "attn_v" in name, "attn_output" in name
    if name == "output.weight":
        return "Q8_0" if to == "Q8_0" else "Q6_K"
    if to in ("Q4_K_M", "Q5_K_M"):
        return "Q6_K" if (down or value) and more(i) else base
    if to == "Q4_K_S":
        return "Q5_K" if (value and i < 4) or (down and i < LAYERS // 8) else base
    if to == "Q3_K_L":
        return "Q5_K" if down or value or out else base
    if to == "Q3_K_M":
        return "Q5_K" if value and i < 2 else "Q4_K" if down or value or out else base
    if to == "Q2_K":
        return "Q4_K" if value else "Q3_K" if down or out else base
    return base


def expected(to, name, x):
    if name.endswith("_norm.weight") or not name.endswith("weight"):
        return "F32"
    if to in ("F32", "F16", "BF16"):
        return to
    kind = by_rule(to, name)
    if "_K" in kind and x % 256:
        kind = {"Q2_K": "Q4_0", "Q3_K": "Q4_0", "Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0"}[kind]
    return "F16" if x % 32 else kind


def values(f, skip):
    return {k: [p.tobytes() for p in v.parts] for k, v in f.fields.items() if not k.startswith(("GGUF.", "split.")) and k not in skip}


def check(source, path, to):
    a, b = gguf.GGUFReader(source), gguf.GGUFReader(path)
    set_anew = ("general.file_type", "general.quantization_version")
    if values(a, set_anew) != values(b, set_anew):
        yield "keys differ"
    if b.fields["general.file_type"].contents() != NUMBER[to]:
        yield "general.file_type is wrong"
    if (to not in ("F32", "F16", "BF16")) and b.fields["general.quantization_version"].contents() != 2:
        yield "general.quantization_version is not 2"
    if any(k.startswith("split.") for k in b.fields):
        yield "keys of parts are left"
    have = {t.name: t for t in b.tensors}
    if source.endswith("wide.gguf") and list(have) != [t.name for t in a.tensors]:
        yield "the order of tensors is another"
    for t in a.tensors:
        x = np.array(t.data).astype(np.float32)
        u, want = have[t.name], expected(to, t.name, x.shape[-1])
        if u.tensor_type.name != want:
            yield f"{t.name} is {u.tensor_type.name}, expected {want}"
        elif want in EXACT and t.tensor_type.name != want:
            if gguf.quants.quantize(x, u.tensor_type).tobytes() != u.data.tobytes():
                yield f"{t.name}: the bytes of {want} are not those of the gguf package"
        elif want == t.tensor_type.name:
            if t.data.tobytes() != u.data.tobytes():
                yield f"{t.name} is {want} as before and differs"
        elif t.name.startswith(("blk.0.", "blk.7.", "output")):
            e = x - gguf.quants.dequantize(u.data, u.tensor_type)
            db = 10 * np.log10((x * x).sum() / (e * e).sum())
            if not db >= LEAST[want]:
                yield f"{t.name}: {want} has {db:.2f} dB, expected {LEAST[want]}"


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2])
    elif sys.argv[1] == "folder":
        for k in range(2, len(sys.argv), 3):
            folder(sys.argv[k], int(sys.argv[k + 1]), sys.argv[k + 2])
    else:
        for path, to in zip(sys.argv[3::2], sys.argv[4::2]):
            for line in check(sys.argv[2], path, to):
                print(f"{to}: {line}")
