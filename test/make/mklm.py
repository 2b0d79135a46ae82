"""Writes tiny random decoders of every architecture, as GGUF and as safetensors with config.json, and their logits.

usage: mklm.py DIR [NAME ... | --wide]    with the packages gguf, safetensors and numpy

Each row of CASES becomes DIR/NAME.gguf, the folder DIR/NAME, and DIR/NAME.npz with ids and the logits of every position.
Each row of BAD becomes DIR/bad/NAME.gguf, which ingot must refuse.
DIR/cases.json lists both.
The reference is NumPy in double, written from the formulas: all tokens at once, keys repeated for their query heads, RoPE on
halves, angles computed for each position.
"""
import json
import math
import sys
from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import save_file

VOCAB, EMBED, LAYERS, HEADS, KV, FFN, LENGTH = 47, 32, 3, 4, 2, 56, 24

BASE = {
    "vocab_size": VOCAB, "hidden_size": EMBED, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": KV,
    "intermediate_size": FFN, "max_position_embeddings": 96, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
    "tie_word_embeddings": False,
}
GEMMA = {"hidden_activation": "gelu_pytorch_tanh", "hidden_act": "gelu", "tie_word_embeddings": True, "head_dim": 12}


def case(model_type, **more):
    return {**BASE, "model_type": model_type, **more}


SHORT, LONG = [1.0, 1.25, 1.5, 1.75], [1.5, 2.0, 3.5, 5.0]
CASES = {
    "llama": case("llama"),
    "llama_tied_bias": case("llama", tie_word_embeddings=True, attention_bias=True, mlp_bias=True),
    "llama_head": case("llama", head_dim=6, num_key_value_heads=4),
    "llama_linear": case("llama", rope_scaling={"type": "linear", "factor": 2.5}),
    "llama_llama3": case("llama", num_key_value_heads=1, rope_scaling={
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}),
    "llama_yarn": case("llama", rope_scaling={
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 24, "beta_fast": 2.0}),
    "mistral": case("mistral", sliding_window=7),
    "qwen2": case("qwen2", use_sliding_window=False, sliding_window=5, tie_word_embeddings=True),
    "qwen3": case("qwen3", head_dim=16, rope_theta=1000000.0),
    "gemma": case("gemma", **GEMMA),
    "gemma2": case("gemma2", **GEMMA, sliding_window=6, query_pre_attn_scalar=12, attn_logit_softcapping=3.0, final_logit_softcapping=25.0),
    "gemma3": case("gemma3_text", **GEMMA, sliding_window=6, sliding_window_pattern=3, query_pre_attn_scalar=12, rope_theta=1000000.0,
                   rope_local_base_freq=10000.0),
    "phi3": case("phi3", rope_scaling={"type": "longrope", "short_factor": SHORT, "long_factor": LONG},
                 original_max_position_embeddings=64),
    "phi3_part": case("phi3", partial_rotary_factor=0.5, sliding_window=9),
    "mixtral": case("mixtral", num_local_experts=4, num_experts_per_tok=2),
    "qwen3moe": case("qwen3_moe", head_dim=16, num_experts=5, num_experts_per_tok=2, moe_intermediate_size=24, norm_topk_prob=True),
    "qwen2moe": case("qwen2_moe", num_experts=4, num_experts_per_tok=3, moe_intermediate_size=24, shared_expert_intermediate_size=40),
    "smollm3": case("smollm3", num_hidden_layers=5, no_rope_layer_interval=4, rope_theta=50000.0),
}
# GGUF names of architectures, and those whose rows of q and k are permuted
ARCH = {"mistral": "llama", "gemma3_text": "gemma3", "mixtral": "llama", "qwen3_moe": "qwen3moe", "qwen2_moe": "qwen2moe"}
PAIRS = ("llama", "mistral", "smollm3", "mixtral")
FUSED, POST, HEAD_NORM = ("phi3",), ("gemma2", "gemma3_text"), ("qwen3", "gemma3_text", "qwen3_moe")
# experts: gate, up and down; the prefix of their layer
EXPERTS = {"mixtral": ("w1", "w3", "w2", "block_sparse_moe.")}


def head_size(c):
    return c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]


def experts_of(c):
    return c.get("num_local_experts") or c.get("num_experts", 0)


def expert_size(c):
    return c.get("moe_intermediate_size", c["intermediate_size"])


def make_weights(c, seed):
    """Returns tensors by their safetensors names."""
    rng, kind = np.random.default_rng(seed), c["model_type"]
    n, d, f, h, k = c["hidden_size"], head_size(c), c["intermediate_size"], c["num_attention_heads"], c["num_key_value_heads"]
    w = {}

    def matrix(name, rows, cols, with_bias=False):
        w[name + ".weight"] = rng.normal(0, 1 / math.sqrt(cols), (rows, cols)).astype(np.float32)
        if with_bias:
            w[name + ".bias"] = rng.normal(0, 0.3, rows).astype(np.float32)

    def norm(name, size=n):
        middle = 0.0 if kind.startswith("gemma") else 1.0
        w[name + ".weight"] = (middle + rng.normal(0, 0.2, size)).astype(np.float32)

    w["model.embed_tokens.weight"] = rng.normal(0, 1, (c["vocab_size"], n)).astype(np.float32)
    for i in range(c["num_hidden_layers"]):
        at = f"model.layers.{i}."
        bias, attn = kind in ("qwen2", "qwen2_moe") or c.get("attention_bias", False), at + "self_attn."
        norm(at + "input_layernorm")
        norm(at + "post_attention_layernorm")
        if kind in POST:
            norm(at + "pre_feedforward_layernorm")
            norm(at + "post_feedforward_layernorm")
        if kind in HEAD_NORM:
            norm(attn + "q_norm", d)
            norm(attn + "k_norm", d)
        if kind in FUSED:
            matrix(attn + "qkv_proj", (h + 2 * k) * d, n)
            matrix(at + "mlp.gate_up_proj", 2 * f, n)
        else:
            matrix(attn + "q_proj", h * d, n, bias)
            matrix(attn + "k_proj", k * d, n, bias)
            matrix(attn + "v_proj", k * d, n, bias)
        if experts_of(c):
            gate, up, down, mlp = EXPERTS.get(kind, ("gate_proj", "up_proj", "down_proj", "mlp."))
            matrix(at + mlp + "gate", experts_of(c), n)
            for e in range(experts_of(c)):
                for part in (gate, up):
                    matrix(f"{at}{mlp}experts.{e}.{part}", expert_size(c), n)
                matrix(f"{at}{mlp}experts.{e}.{down}", n, expert_size(c))
            if "shared_expert_intermediate_size" in c:
                for part in ("gate", "up"):
                    matrix(f"{at}mlp.shared_expert.{part}_proj", c["shared_expert_intermediate_size"], n)
                matrix(at + "mlp.shared_expert.down_proj", n, c["shared_expert_intermediate_size"])
                matrix(at + "mlp.shared_expert_gate", 1, n)
        elif kind not in FUSED:
            matrix(at + "mlp.gate_proj", f, n, c.get("mlp_bias", False))
            matrix(at + "mlp.up_proj", f, n, c.get("mlp_bias", False))
        matrix(attn + "o_proj", n, h * d, c.get("attention_bias", False))
        if not experts_of(c):
            matrix(at + "mlp.down_proj", n, f, c.get("mlp_bias", False))
    norm("model.norm")
    if not c["tie_word_embeddings"]:
        matrix("lm_head", c["vocab_size"], n)
    return w


# ---- the reference ----

def frequencies(c, local, context):
    """Returns the angle per position for each pair, in radians, and the factor of cosines and sines."""
    d = int(head_size(c) * c.get("partial_rotary_factor", 1))
    base = c["rope_local_base_freq"] if local else c["rope_theta"]
    theta = base ** (-np.arange(0, d, 2) / d)
    s = c.get("rope_scaling")
    if not s or local:
        return theta, 1.0
    kind, factor = s.get("rope_type", s.get("type")), s.get("factor")
    orig = s.get("original_max_position_embeddings", c.get("original_max_position_embeddings"))
    if kind == "linear":
        return theta / factor, 1.0
    if kind == "llama3":
        low, high = s["low_freq_factor"], s["high_freq_factor"]
        wave = 2 * math.pi / theta
        smooth = (orig / wave - low) / (high - low)
        middle = theta * ((1 - smooth) / factor + smooth)
        return np.where(wave > orig / low, theta / factor, np.where(wave < orig / high, theta, middle)), 1.0
    if kind == "yarn":
        def corr(turns):
            return d * math.log(orig / (2 * math.pi * turns)) / (2 * math.log(base))
        low = max(0, math.floor(corr(s.get("beta_fast", 32))))
        high = min(d - 1, math.ceil(corr(s.get("beta_slow", 1))))
        ramp = 1 - np.clip((np.arange(d // 2) - low) / max(0.001, high - low), 0, 1)
        return theta / factor * (1 - ramp) + theta * ramp, 1 + 0.1 * math.log(factor)
    if kind == "longrope":
        ratio = c["max_position_embeddings"] / orig
        return theta / np.array(s["long_factor"] if context > orig else s["short_factor"]), math.sqrt(1 + math.log(ratio) / math.log(orig))
    raise ValueError(kind)


def turn(x, theta, gain):
    """Rotates x [length, heads, size]: element i with i + half; the rest stays."""
    half = len(theta)
    angle = np.arange(len(x))[:, None, None] * theta
    cos, sin = gain * np.cos(angle), gain * np.sin(angle)
    a, b = x[..., :half], x[..., half:2 * half]
    return np.concatenate([a * cos - b * sin, a * sin + b * cos, x[..., 2 * half:]], -1)


def rms(x, w, eps, plus):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * (w + plus)


def window_of(c, i):
    kind, window = c["model_type"], c.get("sliding_window")
    if not window or kind.startswith("qwen"):
        return 0
    period = {"gemma2": 2, "gemma3_text": c.get("sliding_window_pattern", 6)}.get(kind)
    return window if not period or (i + 1) % period else 0


def reference(c, weights, ids, context=0):
    """Returns logits [length, vocabulary]."""
    w = {k: v.astype(np.float64) for k, v in weights.items()}
    kind, d, h, k, f = c["model_type"], head_size(c), c["num_attention_heads"], c["num_key_value_heads"], c["intermediate_size"]
    gemma, t = kind.startswith("gemma"), len(ids)
    eps, plus = c["rms_norm_eps"], float(gemma)

    def linear(x, name):
        return x @ w[name + ".weight"].T + w.get(name + ".bias", 0)

    def norm(x, name):
        return rms(x, w[name + ".weight"], eps, plus)

    def capped(x, cap):
        return cap * np.tanh(x / cap) if cap else x

    def act(z):
        if gemma:
            return 0.5 * z * (1 + np.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z ** 3)))
        return z / (1 + np.exp(-z))

    def gated(x, gate, up, down):
        return linear(act(linear(x, gate)) * linear(x, up), down)

    def experts(x, at):
        gate, up, down, mlp = EXPERTS.get(kind, ("gate_proj", "up_proj", "down_proj", "mlp."))
        p = np.exp(linear(x, at + mlp + "gate"))
        p /= p.sum(-1, keepdims=True)
        y = np.zeros_like(x)
        for i, row in enumerate(p):
            best = np.argsort(-row)[:c["num_experts_per_tok"]]
            whole = row[best].sum() if c.get("norm_topk_prob", kind == "mixtral") else 1
            for e in best:
                y[i] += row[e] / whole * gated(x[i], *(f"{at}{mlp}experts.{e}.{part}" for part in (gate, up, down)))
        if "shared_expert_intermediate_size" in c:
            shared = gated(x, *(f"{at}mlp.shared_expert.{part}_proj" for part in ("gate", "up", "down")))
            y += shared / (1 + np.exp(-linear(x, at + "mlp.shared_expert_gate")))
        return y

    x = w["model.embed_tokens.weight"][ids] * (math.sqrt(c["hidden_size"]) if gemma else 1)
    scale = (c.get("query_pre_attn_scalar") or d) ** -0.5
    for i in range(c["num_hidden_layers"]):
        at, window = f"model.layers.{i}.", window_of(c, i)
        y = norm(x, at + "input_layernorm")
        if kind in FUSED:
            q, key, v = np.split(linear(y, at + "self_attn.qkv_proj"), [h * d, (h + k) * d], -1)
        else:
            q, key, v = (linear(y, f"{at}self_attn.{p}_proj") for p in "qkv")
        q, key, v = (z.reshape(t, -1, d) for z in (q, key, v))
        if kind in HEAD_NORM:
            q, key = norm(q, at + "self_attn.q_norm"), norm(key, at + "self_attn.k_norm")
        if kind != "smollm3" or (i + 1) % c["no_rope_layer_interval"]:
            theta, gain = frequencies(c, kind == "gemma3_text" and window > 0, context)
            q, key = turn(q, theta, gain), turn(key, theta, gain)
        key, v = (np.repeat(z, h // k, axis=1) for z in (key, v))
        s = capped(np.einsum("ihd,jhd->hij", q, key) * scale, c.get("attn_logit_softcapping"))
        back = np.arange(t)[:, None] - np.arange(t)
        s = np.where((back >= 0) & ((back < window) | (window == 0)), s, -np.inf)
        p = np.exp(s - s.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        y = linear(np.einsum("hij,jhd->ihd", p, v).reshape(t, h * d), at + "self_attn.o_proj")
        x = x + (norm(y, at + "post_attention_layernorm") if kind in POST else y)
        y = norm(x, at + ("pre_feedforward_layernorm" if kind in POST else "post_attention_layernorm"))
        if experts_of(c):
            x = x + experts(y, at)
            continue
        if kind in FUSED:
            gate, up = np.split(linear(y, at + "mlp.gate_up_proj"), [f], -1)
        else:
            gate, up = linear(y, at + "mlp.gate_proj"), linear(y, at + "mlp.up_proj")
        y = linear(act(gate) * up, at + "mlp.down_proj")
        x = x + (norm(y, at + "post_feedforward_layernorm") if kind in POST else y)
    x = norm(x, "model.norm")
    out = x @ w["model.embed_tokens.weight"].T if c["tie_word_embeddings"] else linear(x, "lm_head")
    return capped(out, c.get("final_logit_softcapping"))


# ---- files ----

GGUF_NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output", "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.qkv_proj": "attn_qkv",
    "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.gate_up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
    "block_sparse_moe.gate": "ffn_gate_inp", "mlp.gate": "ffn_gate_inp", "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    **{f"mlp.shared_expert.{part}_proj": f"ffn_{part}_shexp" for part in ("gate", "up", "down")},
    "pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm",
}


def gguf_name(c, name):
    stem, end = name.rsplit(".", 1)
    if stem in GGUF_NAMES:
        return f"{GGUF_NAMES[stem]}.{end}"
    layer, part = stem.removeprefix("model.layers.").split(".", 1)
    if part == "post_attention_layernorm":
        return f"blk.{layer}.{'post_attention_norm' if c['model_type'] in POST else 'ffn_norm'}.{end}"
    return f"blk.{layer}.{GGUF_NAMES[part]}.{end}"


def permuted(x, heads):
    """Permutes the rows of each head from halves to neighbors."""
    return x.reshape(heads, 2, x.shape[0] // heads // 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


def gguf_tensor(c, name, x):
    if c["model_type"].startswith("gemma") and "norm" in name:
        return x + np.float32(1)
    if c["model_type"] in PAIRS and ".q_proj." in name:
        return permuted(x, c["num_attention_heads"])
    if c["model_type"] in PAIRS and ".k_proj." in name:
        return permuted(x, c["num_key_value_heads"])
    return x


def write_gguf_rope(w, c, arch):
    """Sets keys; returns tensors of factors."""
    d = int(head_size(c) * c.get("partial_rotary_factor", 1))
    w.add_rope_dimension_count(d)
    w.add_rope_freq_base(c["rope_theta"])
    s = c.get("rope_scaling")
    if not s:
        return {}
    kind = s.get("rope_type", s.get("type"))
    orig = s.get("original_max_position_embeddings", c.get("original_max_position_embeddings"))
    if kind == "llama3":  # the result, as factors
        plain = frequencies({**c, "rope_scaling": None}, False, 0)[0]
        return {"rope_freqs.weight": (plain / frequencies(c, False, 0)[0]).astype(np.float32)}
    if kind == "longrope":
        w.add_rope_scaling_attn_factors(frequencies(c, False, 0)[1])
        w.add_rope_scaling_orig_ctx_len(orig)
        w.add_string(f"{arch}.rope.scaling.type", "longrope")
        return {f"rope_factors_{which}.weight": np.array(s[which + "_factor"], np.float32) for which in ("long", "short")}
    w.add_string(f"{arch}.rope.scaling.type", kind)
    w.add_rope_scaling_factor(s["factor"])
    if orig:
        w.add_rope_scaling_orig_ctx_len(orig)
    if "beta_fast" in s:
        w.add_float32(f"{arch}.rope.scaling.yarn_beta_fast", s["beta_fast"])
    return {}


def write_gguf(path, c, weights, quant=None, change=None):
    """quant: block type of the matrices whose rows it fits; change: called with the writer and the tensors by name before they
    are written."""
    arch = ARCH.get(c["model_type"], c["model_type"])
    w = gguf.GGUFWriter(path, arch)
    w.add_context_length(c["max_position_embeddings"])
    w.add_embedding_length(c["hidden_size"])
    w.add_block_count(c["num_hidden_layers"])
    w.add_feed_forward_length(c["intermediate_size"])
    w.add_head_count(c["num_attention_heads"])
    w.add_head_count_kv(c["num_key_value_heads"])
    if "head_dim" in c:
        w.add_key_length(head_size(c))
        w.add_value_length(head_size(c))
    w.add_layer_norm_rms_eps(c["rms_norm_eps"])
    w.add_vocab_size(c["vocab_size"])
    if c.get("sliding_window") and any(window_of(c, i) for i in range(c["num_hidden_layers"])):
        w.add_sliding_window(c["sliding_window"])
    if "sliding_window_pattern" in c:
        w.add_uint32(f"{arch}.attention.sliding_window_pattern", c["sliding_window_pattern"])
    if c.get("attn_logit_softcapping"):
        w.add_attn_logit_softcapping(c["attn_logit_softcapping"])
        w.add_final_logit_softcapping(c["final_logit_softcapping"])
    tensors = {gguf_name(c, name): np.ascontiguousarray(gguf_tensor(c, name, x)) for name, x in weights.items() if ".experts." not in name}
    if experts_of(c):
        w.add_expert_count(experts_of(c))
        w.add_expert_used_count(c["num_experts_per_tok"])
        w.add_expert_feed_forward_length(expert_size(c))
        *parts, mlp = EXPERTS.get(c["model_type"], ("gate_proj", "up_proj", "down_proj", "mlp."))
        for i in range(c["num_hidden_layers"]):
            for part, name in zip(parts, ("gate", "up", "down")):
                tensors[f"blk.{i}.ffn_{name}_exps.weight"] = np.stack([weights[f"model.layers.{i}.{mlp}experts.{e}.{part}.weight"] for e in range(experts_of(c))])
    tensors |= write_gguf_rope(w, c, arch)
    if change:
        change(w, tensors)
    for name, x in tensors.items():
        if quant is not None and x.ndim == 2 and x.shape[1] % gguf.GGML_QUANT_SIZES[quant][0] == 0:
            w.add_tensor(name, gguf.quants.quantize(x, quant), raw_dtype=quant)
        else:
            w.add_tensor(name, x)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def write_folder(path, c, weights):
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(json.dumps(c, indent=1))
    save_file(weights, path / "model.safetensors")


# ---- malformed files ----

def put(key, kind, x):
    """Returns a change that sets a key to another value."""
    def change(w, tensors):
        w.kv_data[0][key] = gguf.GGUFValue(x, kind)
    return change


def no_key(key):
    return lambda w, tensors: w.kv_data[0].pop(key)


def no_tensor(name):
    return lambda w, tensors: tensors.pop(name)


def resize(name, *shape):
    return lambda w, tensors: tensors.update({name: np.zeros(shape, np.float32)})


U32, F32, TEXT, BOOL = gguf.GGUFValueType.UINT32, gguf.GGUFValueType.FLOAT32, gguf.GGUFValueType.STRING, gguf.GGUFValueType.BOOL
BAD = [  # name, exit code, part of the message, case to change, change
    ("no-tensor", 4, "blk.1.ffn_down.weight", "llama", no_tensor("blk.1.ffn_down.weight")),
    ("no-embedding", 4, "token_embd.weight", "llama", no_tensor("token_embd.weight")),
    ("no-bias", 4, "blk.0.attn_q.bias", "qwen2", no_tensor("blk.0.attn_q.bias")),
    ("no-post-norm", 4, "blk.2.post_ffw_norm.weight", "gemma2", no_tensor("blk.2.post_ffw_norm.weight")),
    ("rows", 4, "the tensor has shape 30x32, expected 32x32", "llama", resize("blk.0.attn_q.weight", 30, 32)),
    ("columns", 4, "the tensor has shape 32x31, expected 32x32", "llama", resize("blk.0.attn_output.weight", 32, 31)),
    ("norm-size", 4, "the tensor has shape 33, expected 32", "llama", resize("blk.0.attn_norm.weight", 33)),
    ("norm-rank", 4, "the tensor has shape 32x1, expected 32", "llama", resize("output_norm.weight", 32, 1)),
    ("bias-size", 4, "the tensor has shape 15, expected 16", "qwen2", resize("blk.0.attn_v.bias", 15)),
    ("heads", 4, "is not divisible by 6 heads", "llama", put("llama.attention.head_count", U32, 6)),
    ("heads-kv", 4, "4 query heads are not a multiple of 3 key heads", "llama", put("llama.attention.head_count_kv", U32, 3)),
    ("heads-zero", 4, "llama.attention.head_count", "llama", put("llama.attention.head_count", U32, 0)),
    ("heads-huge", 4, "llama.attention.head_count", "llama", put("llama.attention.head_count", U32, 2 ** 32 - 1)),
    ("layers-many", 4, "llama.block_count", "llama", put("llama.block_count", U32, 1 << 20)),
    ("layers-more", 4, "blk.3.", "llama", put("llama.block_count", U32, 4)),
    ("layers-fewer", 3, "blk.2.", "llama", put("llama.block_count", U32, 2)),
    ("head-odd", 4, "RoPE cannot rotate", "llama_head", put("llama.rope.dimension_count", U32, 5)),
    ("turned-too-many", 4, "RoPE cannot rotate", "llama", put("llama.rope.dimension_count", U32, 10)),
    ("value-size", 3, "keys of size 6 with values of size 8", "llama_head", put("llama.attention.value_length", U32, 8)),
    ("vocabulary", 4, "the vocabulary has 48 tokens, but its embedding has 47 rows", "llama", put("llama.vocab_size", U32, 48)),
    ("no-key", 4, "embedding_length", "llama", no_key("llama.embedding_length")),
    ("key-type", 4, "llama.embedding_length", "llama", put("llama.embedding_length", TEXT, "32")),
    ("epsilon", 4, "rms_epsilon", "llama", put("llama.attention.layer_norm_rms_epsilon", F32, math.nan)),
    ("base", 4, "the base is -1", "llama", put("llama.rope.freq_base", F32, -1.0)),
    ("base-one", 4, "yarn scaling does not support a base of 1", "llama_yarn", put("llama.rope.freq_base", F32, 1.0)),
    ("original-one", 4, "an original context length above 1", "phi3", put("phi3.rope.scaling.original_context_length", U32, 1)),
    ("scaling", 3, "scaling 'spiral' is not supported", "llama", put("llama.rope.scaling.type", TEXT, "spiral")),
    ("no-factor", 4, "linear scaling needs a factor", "llama_linear", no_key("llama.rope.scaling.factor")),
    ("factor-zero", 4, "rope.scaling.factor is 0", "llama_linear", put("llama.rope.scaling.factor", F32, 0.0)),
    ("factors-few", 4, "3 factors, expected one for each of 4 pairs", "llama_llama3", resize("rope_freqs.weight", 3)),
    ("factors-zero", 4, "a factor of 0", "llama_llama3", resize("rope_freqs.weight", 4)),
    ("architecture", 3, "architecture 'mamba'", "llama", put("general.architecture", TEXT, "mamba")),
    ("experts", 4, "expert_used_count", "llama", put("llama.expert_count", U32, 4)),
    ("experts-groups", 3, "expert_group_count", "qwen3moe", put("qwen3moe.expert_group_count", U32, 2)),
    ("experts-gating", 3, "expert_gating_func", "qwen3moe", put("qwen3moe.expert_gating_func", U32, 3)),
    ("experts-rank", 4, "rank 2", "qwen3moe", resize("blk.0.ffn_up_exps.weight", 24, 32)),
    ("experts-fewer", 4, "5 experts of 24x32", "qwen3moe", resize("blk.1.ffn_up_exps.weight", 4, 24, 32)),
    ("experts-chosen", 4, "expert_used_count", "qwen3moe", put("qwen3moe.expert_used_count", U32, 6)),
    ("bidirectional", 3, "bidirectional attention needs an embedding model", "llama", put("llama.attention.causal", BOOL, False)),
    ("tensor-more", 3, "blk.0.ffn_gate_inp.weight", "llama", resize("blk.0.ffn_gate_inp.weight", 4, 32)),
]


def write_bad(out):
    (out / "bad").mkdir(exist_ok=True)
    for name, _, _, of, change in BAD:
        write_gguf(out / "bad" / f"{name}.gguf", CASES[of], make_weights(CASES[of], 0), change=change)
    return [{"name": name, "code": code, "says": says} for name, code, says, _, _ in BAD]


def main(out, only):
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    if only == ["--wide"]:  # rows of whole quant blocks
        c = case("llama", hidden_size=256, intermediate_size=256)
        return write_gguf(out / "wide.gguf", c, make_weights(c, 3))
    for seed, (name, c) in enumerate(CASES.items()):
        if only and name not in only:
            continue
        weights = make_weights(c, seed)
        ids = np.random.default_rng(1000 + seed).integers(0, c["vocab_size"], LENGTH)
        write_folder(out / name, c, weights)
        write_gguf(out / f"{name}.gguf", c, weights)
        np.savez(out / f"{name}.npz", ids=ids.astype(np.int32), logits=reference(c, weights, ids, c["max_position_embeddings"]))
    (out / "cases.json").write_text(json.dumps({"names": list(CASES), "bad": write_bad(out)}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
