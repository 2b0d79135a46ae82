"""Networks for text, sequences and small sensors: transformers, recurrent layers, perceptrons.

Exporters spell attention in two ways, and both are here. "dynamo": LayerNormalization is one node and both factors of the scores are
multiplied by the root of the scale; "script": the layer norm is spelled out and the scores are divided. GPT-2 has QKV fused
and split afterwards, keys and values of 64 earlier tokens as inputs and one more as outputs.
"""
import numpy as np

from netlib import net

VOCABULARY = 30522


def heads(n, x, length, count, width, perm=(0, 2, 1, 3)):
    return n.transpose(n.reshape(x, 1, length, count, width), *perm)


def attend(n, q, k_t, v, length, width, style, mask=None):
    """Softmax(Q K' / sqrt(width) + mask) V with heads merged again; q, v: 1 x heads x length x width; k_t: its last axes swapped."""
    if style == "dynamo":
        root = n.const(width ** -0.25)
        s = n.op("MatMul", n.op("Mul", q, root), n.op("Mul", k_t, root))
    else:
        s = n.op("Div", n.op("MatMul", q, k_t), n.const(width ** 0.5))
    s = n.op("Add", s, mask) if mask else s
    y = n.transpose(n.op("MatMul", n.op("Softmax", s, axis=-1), v), 0, 2, 1, 3)
    return y


def encoder(n, x, length, count, style, mask):
    """A post-norm encoder layer."""
    h = n.c[x]
    w = h // count
    q, k, v = (heads(n, n.linear(x, h), length, count, w, p) for p in ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)))
    y = n.linear(n.reshape(attend(n, q, k, v, length, w, style, mask), 1, length, h), h)
    x = n.layernorm(n.add(y, x), 1e-12, style == "script")
    y = n.linear(n.gelu(n.linear(x, 4 * h)), h)
    return n.layernorm(n.add(y, x), 1e-12, style == "script")


def bert(n, layers, h, count, style, length=128):
    ids = n.input("input_ids", n.rng.integers(0, VOCABULARY, (1, length)))
    keep = n.input("attention_mask", (np.arange(length)[None] < length - 20).astype(np.int64))
    tables = [n.weight(VOCABULARY, h, scale=0.5), n.weight(2, h, scale=0.5)]
    x = n.op("Add", n.op("Gather", tables[0], ids), n.op("Gather", tables[1], n.const(np.zeros((1, length)), np.int64)))
    x = n.op("Add", x, n.weight(1, length, h, scale=0.5))
    n.c[x] = h
    x = n.layernorm(x, 1e-12, style == "script")
    mask = n.op("Cast", n.op("Unsqueeze", keep, n.ints(1, 2)), to=1)
    mask = n.op("Mul", n.op("Sub", n.const(1.0), mask), n.const(-10000.0))
    for _ in range(layers):
        x = encoder(n, x, length, count, style, mask)
    n.output(x, "last_hidden_state")
    n.output(n.op("Tanh", n.gemm(n.op("Gather", x, n.const(0, np.int64), axis=1), h)), "pooler_output")


@net("bert-base", "BERT-base, 128 tokens", at_least=(1.1, 1.08), aim=(1.25, 1.2), gmac=11.2)
def bert_base(n):
    bert(n, 12, 768, 12, "dynamo")


@net("minilm", "MiniLM-6, 128 tokens", at_least=(1.2, 1.08), aim=(1.37, 1.22), gmac=1.44, net={"opset": 14})
def minilm(n):
    bert(n, 6, 384, 12, "script")


@net("bert-tiny", "BERT-tiny, 128 tokens", at_least=(1.4, 1.15), aim=(1.75, 1.4), gmac=0.059)
def bert_tiny(n):
    bert(n, 2, 128, 2, "dynamo")
