"""Tiny random text encoders of every architecture, as folders and as GGUF, and what they compute.

usage: mkenc.py DIR    with the packages gguf, safetensors and numpy

For each row of CASES: the folder DIR/NAME and DIR/NAME.npz with ids and the result; DIR/NAME.gguf where GGUF has the architecture. The reference
is NumPy in f64, written from the formulas. Weights are made under names of GGUF; NAMES has those of safetensors.
"""
import json
import math
import sys
from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import save_file

VOCAB, SIZE, LAYERS, HEADS, FFN, POSITIONS, LENGTH = 53, 24, 4, 3, 40, 48, 40
BERT = {"token_embd": "embeddings.word_embeddings", "position_embd": "embeddings.position_embeddings", "token_types": "embeddings.token_type_embeddings",
        "token_embd_norm": "embeddings.LayerNorm", "cls": "pooler.dense", "cls.output": "classifier",
        "attn_q": "encoder.layer.%d.attention.self.query", "attn_k": "encoder.layer.%d.attention.self.key", "attn_v": "encoder.layer.%d.attention.self.value",
        "attn_output": "encoder.layer.%d.attention.output.dense", "attn_output_norm": "encoder.layer.%d.attention.output.LayerNorm",
        "ffn_up": "encoder.layer.%d.intermediate.dense", "ffn_down": "encoder.layer.%d.output.dense", "layer_output_norm": "encoder.layer.%d.output.LayerNorm"}
ROBERTA = {**BERT, "cls": "classifier.dense", "cls.output": "classifier.out_proj"}
MPNET = {**ROBERTA, **{f"attn_{x}": f"encoder.layer.%d.attention.attn.{x}" for x in "qkv"}, "attn_output": "encoder.layer.%d.attention.attn.o",
         "attn_output_norm": "encoder.layer.%d.attention.LayerNorm", "relative": "encoder.relative_attention_bias"}
DISTIL = {**BERT, **{f"attn_{x}": f"transformer.layer.%d.attention.{x}_lin" for x in "qkv"}, "attn_output": "transformer.layer.%d.attention.out_lin",
          "attn_output_norm": "transformer.layer.%d.sa_layer_norm", "ffn_up": "transformer.layer.%d.ffn.lin1", "ffn_down": "transformer.layer.%d.ffn.lin2",
          "layer_output_norm": "transformer.layer.%d.output_layer_norm", "cls": "pre_classifier"}
NOMIC = {**BERT, "token_embd_norm": "emb_ln", "attn_qkv": "encoder.layers.%d.attn.Wqkv", "attn_output": "encoder.layers.%d.attn.out_proj",
         "attn_output_norm": "encoder.layers.%d.norm1", "ffn_up": "encoder.layers.%d.mlp.fc11", "ffn_gate": "encoder.layers.%d.mlp.fc12",
         "ffn_down": "encoder.layers.%d.mlp.fc2", "layer_output_norm": "encoder.layers.%d.norm2"}
MODERN = {"token_embd": "embeddings.tok_embeddings", "token_embd_norm": "embeddings.norm", "attn_norm": "layers.%d.attn_norm", "attn_qkv": "layers.%d.attn.Wqkv",
          "attn_output": "layers.%d.attn.Wo", "ffn_norm": "layers.%d.mlp_norm", "ffn_up": "layers.%d.mlp.Wi", "ffn_down": "layers.%d.mlp.Wo",
          "output_norm": "final_norm", "cls": "head.dense", "cls.norm": "head.norm", "cls.output": "classifier"}
# GGUF name, model_type, names, facts; pool: 1 mean, 2 cls, 3 last, "head": scores
CASES = {
    "bert": ("bert", "bert", BERT, {"types": 2, "pool": 1}),
    "roberta": ("bert", "roberta", ROBERTA, {"types": 1, "offset": 2, "pool": 2}),
    "xlmr_rerank": ("bert", "xlm-roberta", ROBERTA, {"types": 1, "offset": 2, "pool": "head", "root": "roberta."}),
    "bert_rerank": ("bert", "bert", BERT, {"types": 2, "pool": "head", "root": "bert."}),
    "distilbert": ("bert", "distilbert", DISTIL, {"pool": 3}),
    "distilbert_class": (None, "distilbert", DISTIL, {"pool": "head", "act": "relu", "root": "distilbert.", "classes": 2}),
    "mpnet": (None, "mpnet", MPNET, {"offset": 2, "relative": True, "pool": 1}),
    "nomic": ("nomic-bert", "nomic_bert", NOMIC, {"types": 2, "rope": 1000.0, "gated": True, "pool": 1}),
    "modern": ("modern-bert", "modernbert", MODERN, {"rope": 160000.0, "gated": True, "before": True, "window": 8, "pool": 1}),
    "modern_rerank": ("modern-bert", "modernbert", MODERN, {"rope": 160000.0, "gated": True, "before": True, "window": 8, "pool": "head", "root": "model.", "act": "gelu"}),
}


def make_weights(fact, seed):
    rng, w = np.random.default_rng(seed), {}
    plain = fact.get("rope")

    def put(name, *shape, norm=False, bias=None):
        w[name + ".weight"] = (1 + rng.normal(0, 0.2, shape) if norm else rng.normal(0, 1 / math.sqrt(shape[-1]), shape)).astype(np.float32)
        if (not plain or norm and not fact.get("before")) if bias is None else bias:
            w[name + ".bias"] = rng.normal(0, 0.2, shape[0]).astype(np.float32)

    put("token_embd", VOCAB, SIZE, bias=False)
    if not plain:
        put("position_embd", POSITIONS + fact.get("offset", 0), SIZE, bias=False)
    if fact.get("types"):
        put("token_types", fact["types"], SIZE, bias=False)
    if fact.get("relative"):
        put("relative", 32, HEADS, bias=False)
    put("token_embd_norm", SIZE, norm=True)
    for i in range(LAYERS):
        at = f"blk.{i}."
        for name in ("attn_qkv",) if plain else ("attn_q", "attn_k", "attn_v"):
            put(at + name, SIZE * (3 if plain else 1), SIZE)
        put(at + "attn_output", SIZE, SIZE)
        both = fact.get("before")
        put(at + "ffn_up", FFN * (2 if both else 1), SIZE)
        if plain and not both:
            put(at + "ffn_gate", FFN, SIZE)
        put(at + "ffn_down", SIZE, FFN)
        for name in ("attn_norm", "ffn_norm") if both else ("attn_output_norm", "layer_output_norm"):
            if i or name != "attn_norm":
                put(at + name, SIZE, norm=True)
    if fact.get("before"):
        put("output_norm", SIZE, norm=True)
    if fact["pool"] == "head":
        put("cls", SIZE, SIZE, bias=not fact.get("before"))
        if fact.get("before"):
            put("cls.norm", SIZE, norm=True)
        put("cls.output", fact.get("classes", 1), SIZE, bias=True)
    return w


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def bucket(far):
    n, at = abs(far), abs(far)
    if n >= 8:
        at = min(15, 8 + int(math.log(n / 8) / math.log(16) * 8 + 1e-9))
    return at + (16 if far > 0 else 0)


def reference(fact, weights, ids):
    w = {k: v.astype(np.float64) for k, v in weights.items()}
    eps, t, d = (1e-5 if fact.get("before") else 1e-12), len(ids), SIZE // HEADS

    def norm(x, name):
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w[name + ".weight"] + w.get(name + ".bias", 0)

    def linear(x, name):
        return x @ w[name + ".weight"].T + w.get(name + ".bias", 0)

    def turn(x, base):
        angle = np.arange(t)[:, None, None] * base ** (-np.arange(0, d, 2) / d)
        a, b = x[..., :d // 2], x[..., d // 2:]
        return np.concatenate([a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)], -1)

    x = w["token_embd.weight"][ids]
    if "token_types.weight" in w:
        ends = np.cumsum(ids == ids[-1]) - (ids == ids[-1])  # the second text follows the first separator
        x = x + w["token_types.weight"][np.minimum(ends, 1) if fact["pool"] == "head" and fact["types"] > 1 else 0]
    if "position_embd.weight" in w:
        x = x + w["position_embd.weight"][fact.get("offset", 0):][:t]
    x = norm(x, "token_embd_norm")
    far = np.arange(t) - np.arange(t)[:, None]
    for i in range(LAYERS):
        at, local = f"blk.{i}.", fact.get("window") and i % 3
        y = norm(x, at + "attn_norm") if at + "attn_norm.weight" in w else x
        q, k, v = np.split(linear(y, at + "attn_qkv"), 3, -1) if fact.get("rope") else (linear(y, at + "attn_" + p) for p in "qkv")
        q, k, v = (z.reshape(t, HEADS, d) for z in (q, k, v))
        if fact.get("rope"):
            q, k = (turn(z, 10000.0 if local else fact["rope"]) for z in (q, k))
        s = np.einsum("ihd,jhd->hij", q, k) / math.sqrt(d)
        if fact.get("relative"):
            s = s + w["relative.weight"][np.vectorize(bucket)(far)].transpose(2, 0, 1)
        if local:
            s = np.where(abs(far) <= fact["window"] // 2, s, -np.inf)
        p = np.exp(s - s.max(-1, keepdims=True))
        y = linear(np.einsum("hij,jhd->ihd", p / p.sum(-1, keepdims=True), v).reshape(t, SIZE), at + "attn_output")
        x = x + y if fact.get("before") else norm(x + y, at + "attn_output_norm")
        y = norm(x, at + "ffn_norm") if fact.get("before") else x
        if fact.get("before"):
            a, b = np.split(linear(y, at + "ffn_up"), 2, -1)
            y = gelu(a) * b
        elif fact.get("gated"):
            a = linear(y, at + "ffn_gate")
            y = a / (1 + np.exp(-a)) * linear(y, at + "ffn_up")
        else:
            y = gelu(linear(y, at + "ffn_up"))
        y = linear(y, at + "ffn_down")
        x = x + y if fact.get("before") else norm(x + y, at + "layer_output_norm")
    if fact.get("before"):
        x = norm(x, "output_norm")
    if fact["pool"] == "head":
        y = linear(x[0], "cls")
        y = {"relu": lambda z: np.maximum(z, 0), "gelu": gelu}.get(fact.get("act"), np.tanh)(y)
        return linear(norm(y, "cls.norm") if fact.get("before") else y, "cls.output")
    x = {1: x.mean(0), 2: x[0], 3: x[-1]}[fact["pool"]]
    return x / np.sqrt((x * x).sum())


def write_folder(path, model_type, names, fact, weights):
    path.mkdir(parents=True, exist_ok=True)
    size = {"dim": SIZE, "n_heads": HEADS, "n_layers": LAYERS, "hidden_dim": FFN} if model_type == "distilbert" else {
        "hidden_size": SIZE, "num_attention_heads": HEADS, "num_hidden_layers": LAYERS, "intermediate_size": FFN}
    c = {"model_type": model_type, "vocab_size": VOCAB, "max_position_embeddings": POSITIONS + fact.get("offset", 0), **size}
    if fact.get("before"):
        c |= {"norm_eps": 1e-5, "local_attention": fact["window"], "global_attn_every_n_layers": 3, "global_rope_theta": fact["rope"], "local_rope_theta": 10000.0}
    (path / "config.json").write_text(json.dumps(c))
    out, outside = {}, ("classifier", "pre_classifier", "head")
    for name, x in weights.items():
        stem, end = name.rsplit(".", 1)
        layer = stem.split(".")[1] if stem.startswith("blk.") else None
        full = names[stem.split(".", 2)[2]] % int(layer) if layer else names[stem]
        out[("" if full.startswith(outside) else fact.get("root", "")) + full + "." + end] = x
    save_file(out, path / "model.safetensors")
    if fact["pool"] != "head":
        (path / "1_Pooling").mkdir(exist_ok=True)
        key = {1: "mean_tokens", 2: "cls_token", 3: "lasttoken"}[fact["pool"]]
        (path / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_" + key: True}))
        (path / "modules.json").write_text(json.dumps([{"path": f"{i}_{n}" if i else "", "type": "sentence_transformers.models." + n}
                                                       for i, n in enumerate(("Transformer", "Pooling", "Normalize"))]))


def write_gguf(path, arch, fact, weights):
    w = gguf.GGUFWriter(path, arch)
    w.add_context_length(POSITIONS)
    w.add_embedding_length(SIZE)
    w.add_block_count(LAYERS)
    w.add_feed_forward_length(FFN)
    w.add_head_count(HEADS)
    w.add_layer_norm_eps(1e-5 if fact.get("before") else 1e-12)
    w.add_pooling_type(gguf.PoolingType.RANK if fact["pool"] == "head" else gguf.PoolingType(fact["pool"]))
    if fact.get("rope"):
        w.add_rope_freq_base(fact["rope"])
    if fact.get("window"):
        w.add_sliding_window(fact["window"])
        w.add_sliding_window_pattern([i % 3 != 0 for i in range(LAYERS)])
    w.add_tokenizer_model("bert")
    w.add_token_list(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *("\u2581" + chr(97 + i) for i in range(26)), *(chr(97 + i) for i in range(VOCAB - 30))])
    w.add_token_types([gguf.TokenType.CONTROL] * 4 + [gguf.TokenType.NORMAL] * (VOCAB - 4))
    w.add_bos_token_id(2)
    w.add_sep_token_id(3)
    for name, x in weights.items():  # as the converter does: rows of the padding token's positions are left out
        w.add_tensor(name, np.ascontiguousarray(x[fact.get("offset", 0):] if name.startswith("position") else x))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def main(out):
    for seed, (name, (arch, model_type, names, fact)) in enumerate(CASES.items()):
        weights = make_weights(fact, seed)
        ids = np.random.default_rng(100 + seed).integers(0, VOCAB, LENGTH)
        ids[15] = ids[-1]
        write_folder(out / name, model_type, names, fact, weights)
        if arch:
            write_gguf(out / f"{name}.gguf", arch, fact, weights)
        np.savez(out / f"{name}.npz", ids=ids.astype(np.int32), y=reference(fact, weights, ids))


main(Path(sys.argv[1]))
