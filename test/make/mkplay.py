"""Writes tiny random decoders with a byte-level tokenizer and a chat template, as GGUF.

usage: mkplay.py DIR    with the packages gguf and numpy

    tiny.gguf            the base case
    padded, short.gguf   more and fewer embedding rows than tokens
    window.gguf          layers with a window of 16 tokens
    today, leap.gguf     the template prints the date, or always the same date
    plain.gguf           without a template
    user, deaf.gguf      the template refuses, or drops, system messages
    tools, mistral.gguf  tool calls as text, or after a special token
    greedy, single.gguf  sampling settings in the file
    never.gguf           an invalid sampling setting
    whole.gguf           a top_k of -1: the whole vocabulary
    score_end.gguf       a score, and a tokenizer that adds a token after each text only
    causal, ahead.gguf   embedding models: the vector of the first token, with either attention
    gap.gguf             a byte without a token
    forgets.gguf         the template keeps only the last message
    reason.gguf          the answer begins with reasoning
"""
import sys
from pathlib import Path

import gguf
import numpy as np

EMBED, LAYERS, HEADS, KV, FFN = 64, 2, 4, 2, 96
TEMPLATE = ("{% for m in messages %}{{ '<' + m['role'][0] + '>' + m['content'] + '<end>' }}{% endfor %}"
            "{% if add_generation_prompt %}{{ '<a>' }}{% endif %}")


def byte_names():
    """The printable characters that stand for bytes in byte-level vocabularies."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    names, more = {}, 256
    for b in range(256):
        names[b] = chr(b if b in plain else more)
        more += b not in plain
    return [names[b] for b in range(256)]


def main(path, rows=None, window=None, stretched=None, template=TEMPLATE, marker=None, silent=None, sampling=None, score=False, causal=None):
    rng = np.random.default_rng(5)
    tokens = ["<end>", "<s>", "<u>", "<a>", *byte_names(), "ab"]
    kinds = [gguf.TokenType.CONTROL] * 4 + [gguf.TokenType.NORMAL] * 257
    if marker:
        tokens.append(marker)
        kinds.append(gguf.TokenType.CONTROL)
    if silent:
        kinds[4 + silent] = gguf.TokenType.CONTROL
    w = gguf.GGUFWriter(str(path), "llama")
    w.add_block_count(LAYERS)
    w.add_context_length(128)
    if window:
        w.add_sliding_window(window)
    if stretched:
        w.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        w.add_rope_scaling_factor(stretched)
        w.add_rope_scaling_orig_ctx_len(128)
    w.add_embedding_length(EMBED)
    w.add_feed_forward_length(FFN)
    w.add_head_count(HEADS)
    w.add_head_count_kv(KV)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_rope_dimension_count(EMBED // HEADS)
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("gpt-2")
    w.add_token_list(tokens)
    w.add_token_types(kinds)
    w.add_token_merges(["a b"])
    w.add_eos_token_id(0)
    w.add_add_bos_token(False)
    w.add_add_eos_token(score)
    if causal is not None:
        w.add_pooling_type(gguf.PoolingType.CLS)
        w.add_causal_attention(causal)
    for key, value in (sampling or {}).items():
        (w.add_int32 if isinstance(value, int) else w.add_float32)(f"general.sampling.{key}", value)
    if template:
        w.add_chat_template(template)

    def put(name, *shape, scale=0.3):
        w.add_tensor(name, (rng.standard_normal(shape) * scale).astype(np.float32))

    embed = rng.standard_normal((rows or len(tokens), EMBED)).astype(np.float32)
    embed[:4] *= 0.01  # make special tokens and invalid bytes unlikely
    embed[4 + 127:260] *= 0.01
    embed[4:4 + 32] *= 0.01
    w.add_tensor("token_embd.weight", embed)
    w.add_tensor("output_norm.weight", np.ones(EMBED, np.float32))
    for i in range(LAYERS):
        for name in ("attn_norm", "ffn_norm"):
            w.add_tensor(f"blk.{i}.{name}.weight", np.ones(EMBED, np.float32))
        put(f"blk.{i}.attn_q.weight", EMBED, EMBED)
        put(f"blk.{i}.attn_k.weight", EMBED // HEADS * KV, EMBED)
        put(f"blk.{i}.attn_v.weight", EMBED // HEADS * KV, EMBED)
        put(f"blk.{i}.attn_output.weight", EMBED, EMBED)
        put(f"blk.{i}.ffn_gate.weight", FFN, EMBED)
        put(f"blk.{i}.ffn_up.weight", FFN, EMBED)
        put(f"blk.{i}.ffn_down.weight", EMBED, FFN)
    if score:
        put("score.weight", 1, EMBED)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


main(Path(sys.argv[1]) / "tiny.gguf")
main(Path(sys.argv[1]) / "padded.gguf", 900)
main(Path(sys.argv[1]) / "short.gguf", 200)
main(Path(sys.argv[1]) / "window.gguf", window=16)
main(Path(sys.argv[1]) / "stretched.gguf", stretched=2.5)
main(Path(sys.argv[1]) / "today.gguf", template="{{ strftime_now('%d %b %Y') }}" + TEMPLATE)
main(Path(sys.argv[1]) / "leap.gguf", template="29 Feb 2024" + TEMPLATE)
main(Path(sys.argv[1]) / "plain.gguf", template=None)
main(Path(sys.argv[1]) / "user.gguf", template="{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}" + TEMPLATE)
main(Path(sys.argv[1]) / "deaf.gguf", template=TEMPLATE.replace("in messages", "in messages if m.role != 'system'"))
main(Path(sys.argv[1]) / "tools.gguf", template="{% if tools %}{% for t in tools %}{{ t.function.name }}{% endfor %}<tool_call>{% endif %}" + TEMPLATE.replace(
    "m['content']", "(m['content'] or m.tool_calls[0].function.arguments.on|string)"))
main(Path(sys.argv[1]) / "mistral.gguf", template="{% if tools %}[TOOL_CALLS]{% endif %}" + TEMPLATE, marker="[TOOL_CALLS]")
main(Path(sys.argv[1]) / "gap.gguf", silent=0xe9)
main(Path(sys.argv[1]) / "greedy.gguf", sampling={"temp": 0.0})
main(Path(sys.argv[1]) / "single.gguf", sampling={"temp": 5.0, "top_k": 1})
main(Path(sys.argv[1]) / "never.gguf", sampling={"top_p": 1.5})
main(Path(sys.argv[1]) / "whole.gguf", sampling={"top_k": -1})
main(Path(sys.argv[1]) / "score_end.gguf", score=True)
main(Path(sys.argv[1]) / "causal.gguf", causal=True)
main(Path(sys.argv[1]) / "ahead.gguf", causal=False)
main(Path(sys.argv[1]) / "forgets.gguf", template=TEMPLATE.replace("in messages", "in messages[-1:]"))
# as reasoning models: the answer begins in <think>, which later turns drop; white space around messages is removed
main(Path(sys.argv[1]) / "reason.gguf", template=TEMPLATE.replace("m['content']", "(m['content'].split('</think>')[-1])|trim").replace("'<a>'", "'<a><think>'"))
