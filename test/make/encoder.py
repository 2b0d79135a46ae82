"""A BERT encoder in NumPy, in double, from the files of a folder: the reference of test/suite/encoders.py.

    encoder.py run FOLDER "IDS" ...      prints a line of numbers for each list of token ids
    encoder.py make FOLDER [KIND]        writes a small random encoder; KIND: w8, w4, w4z, hidden, cls (see make)
    encoder.py ids FOLDER TEXT ...       prints token ids of texts, by the tokenizers package
"""
import json
import math
import os
import sys

import numpy as np
import safetensors.numpy as st


def erf(x):
    return np.vectorize(math.erf)(x)


ACTS = {"gelu": lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))), "relu": lambda x: np.maximum(x, 0), "silu": lambda x: x / (1 + np.exp(-x)),
        "gelu_new": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))}


def load(folder, name, default=None):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return default
    with open(path) as f:
        return json.load(f)


def unpack(words, n):
    """Unpacks int4 values along the last axis, packed as compressed-tensors does."""
    values = (words[..., None].view(np.uint32) >> np.arange(0, 32, 4, dtype=np.uint32)) & 15
    return values.reshape(*words.shape[:-1], -1)[..., :n].astype(np.int64) - 8


class Weights:
    def __init__(self, folder):
        self.t = st.load_file(os.path.join(folder, "model.safetensors"))

    def __call__(self, name):
        if name + "_packed" in self.t:
            rows, cols = self.t[name + "_shape"]
            q = unpack(self.t[name + "_packed"], cols)
            zero = unpack(np.ascontiguousarray(self.t[name + "_zero_point"].T), rows).T if name + "_zero_point" in self.t else 0
        else:
            q, zero = self.t[name], self.t.get(name + "_zero_point", 0)
        if name + "_scale" not in self.t:
            return q.astype(np.float64)
        s = self.t[name + "_scale"].astype(np.float64)
        s = s.reshape(q.shape[0] if s.size > 1 else 1, -1)
        per = q.shape[1] // s.shape[1]
        zero = np.repeat(np.asarray(zero).reshape(s.shape), per, 1) if np.size(zero) > 1 else zero
        return (q.astype(np.float64) - zero) * np.repeat(s, per, 1)


def encode(folder, ids):
    c, w = load(folder, "config.json"), Weights(folder)
    heads, act = c["num_attention_heads"], ACTS[c["hidden_act"]]

    def norm(x, name):
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + c["layer_norm_eps"]) * w(name + ".weight") + w(name + ".bias")

    def linear(x, name):
        return x @ w(name + ".weight").T + w(name + ".bias")

    e = "embeddings."
    x = w(e + "word_embeddings.weight")[ids] + w(e + "position_embeddings.weight")[:len(ids)] + w(e + "token_type_embeddings.weight")[0]
    x = norm(x, e + "LayerNorm")
    for i in range(c["num_hidden_layers"]):
        p = f"encoder.layer.{i}."
        q, k, v = (linear(x, f"{p}attention.self.{n}").reshape(len(ids), heads, -1).transpose(1, 0, 2) for n in ("query", "key", "value"))
        s = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])
        s = np.exp(s - s.max(-1, keepdims=True))
        y = (s / s.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(len(ids), -1)
        x = norm(x + linear(y, p + "attention.output.dense"), p + "attention.output.LayerNorm")
        x = norm(x + linear(act(linear(x, p + "intermediate.dense")), p + "output.dense"), p + "output.LayerNorm")
    if not load(folder, "modules.json"):
        return x
    how = load(folder, "1_Pooling/config.json")
    x = x.mean(0) if how.get("pooling_mode_mean_tokens") else x.max(0) if how.get("pooling_mode_max_tokens") else x[0]
    return x / max(np.sqrt((x * x).sum()), 1e-12) if len(load(folder, "modules.json")) > 2 else x


def pack(q):
    """Packs int4 values along the last axis into 32-bit words."""
    u = np.pad(q + 8, ((0, 0), (0, -q.shape[1] % 8))).astype(np.uint32).reshape(q.shape[0], -1, 8)
    return (u << np.arange(0, 32, 4, dtype=np.uint32)).sum(-1, dtype=np.uint32).view(np.int32)


def quantised(t, kind, r):
    """Returns layer matrices as compressed-tensors stores them: w8 is int8 with a scale per row, w4 int4 in groups of 8, w4z
    adds zero points."""
    for name in [n for n in t if n.startswith("encoder") and n.endswith(".weight") and t[n].ndim == 2]:
        x = t.pop(name)
        rows, cols = x.shape
        if kind == "w8":
            t[name + "_scale"] = np.abs(x).max(1, keepdims=True) / 127
            t[name] = np.rint(x / t[name + "_scale"]).astype(np.int8)
            continue
        q = r.integers(-8, 8, x.shape)
        t[name + "_packed"] = pack(q)
        t[name + "_shape"] = np.array(x.shape, np.int64)
        t[name + "_scale"] = (0.02 * r.random((rows, cols // 8))).astype(np.float16)
        if kind == "w4z":
            t[name + "_zero_point"] = np.ascontiguousarray(pack(r.integers(-8, 8, (cols // 8, rows))).T)


def make(folder, kind=""):
    """Writes a random encoder. hidden: without modules.json, returns the vectors of all tokens; cls: returns the first token's
    vector without normalization, and uses another activation."""
    r = np.random.default_rng(3)
    c = {"model_type": "bert", "hidden_size": 24, "num_attention_heads": 3, "num_hidden_layers": 2, "intermediate_size": 40, "vocab_size": 50,
         "max_position_embeddings": 16, "type_vocab_size": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu_new" if kind == "cls" else "gelu"}
    t, h = {}, c["hidden_size"]

    def add(name, *shape):
        t[name + ".weight"] = (r.standard_normal(shape) * 0.3).astype(np.float32)
        if "Norm" in name or "layer" in name:
            t[name + ".bias"] = (r.standard_normal(shape[:1]) * 0.1).astype(np.float32)

    for name, rows in (("word", 50), ("position", 16), ("token_type", 2)):
        add(f"embeddings.{name}_embeddings", rows, h)
    add("embeddings.LayerNorm", h)
    for i in range(2):
        p = f"encoder.layer.{i}."
        for name, *shape in (("attention.self.query", h, h), ("attention.self.key", h, h), ("attention.self.value", h, h), ("attention.output.dense", h, h),
                             ("attention.output.LayerNorm", h), ("intermediate.dense", 40, h), ("output.dense", h, 40), ("output.LayerNorm", h)):
            add(p + name, *shape)
    if kind.startswith("w"):
        quantised(t, kind, r)
        c["quantization_config"] = {"quant_method": "compressed-tensors", "format": "int-quantized" if kind == "w8" else "pack-quantized"}
    os.makedirs(os.path.join(folder, "1_Pooling"), exist_ok=True)
    st.save_file(t, os.path.join(folder, "model.safetensors"))
    files = {"config.json": c, "1_Pooling/config.json": {"pooling_mode_cls_token": kind == "cls", "pooling_mode_mean_tokens": kind != "cls"}}
    if kind != "hidden":
        names = ("Transformer", "Pooling") if kind == "cls" else ("Transformer", "Pooling", "Normalize")
        files["modules.json"] = [{"idx": i, "path": f"{i}_{n}" if i else "", "type": "sentence_transformers.models." + n} for i, n in enumerate(names)]
    for name, data in files.items():
        with open(os.path.join(folder, name), "w") as f:
            json.dump(data, f)


def main():
    verb, folder, *rest = sys.argv[1:]
    if verb == "make":
        make(folder, *rest)
    elif verb == "ids":
        import tokenizers
        t = tokenizers.Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
        t.no_padding()
        for text in rest:
            print(*t.encode(text).ids)
    else:
        for ids in rest:
            print(*(f"{x:.9g}" for x in encode(folder, [int(i) for i in ids.split()]).ravel()))


main()
