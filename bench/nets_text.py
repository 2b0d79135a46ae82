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


def attend(n, q, k_t, v, width, style, mask=None):
    """Softmax(Q K' / sqrt(width) + mask) V, length before heads; q, v: 1 x heads x length x width; k_t: last axes swapped."""
    if style == "dynamo":
        root = n.const(width ** -0.25)
        s = n.op("MatMul", n.op("Mul", q, root), n.op("Mul", k_t, root))
    else:
        s = n.op("Div", n.op("MatMul", q, k_t), n.const(width ** 0.5))
    s = n.op("Add", s, mask) if mask else s
    return n.transpose(n.op("MatMul", n.op("Softmax", s, axis=-1), v), 0, 2, 1, 3)


def encoder(n, x, length, count, style, mask):
    """A post-norm encoder layer."""
    h = n.c[x]
    w = h // count
    q, k, v = (heads(n, n.linear(x, h), length, count, w, p) for p in ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)))
    y = n.linear(n.reshape(attend(n, q, k, v, w, style, mask), 1, length, h), h)
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


# ---- one token with a cache ----

def gelu_tanh(n, x):
    y = n.op("Add", x, n.op("Mul", n.op("Pow", x, n.const(3.0)), n.const(0.044715)))
    y = n.op("Add", n.op("Tanh", n.op("Mul", y, n.const((2 / np.pi) ** 0.5))), n.const(1.0))
    return n.op("Mul", n.op("Mul", x, n.const(0.5)), y)


def gpt(n, layers, h, count, vocabulary, positions, past=64):
    w = h // count
    ids = n.input("input_ids", n.rng.integers(0, vocabulary, (1, 1)))
    place = n.input("position_ids", np.array([[past]]))
    table = n.weight(vocabulary, h, scale=0.5)
    x = n.op("Add", n.op("Gather", table, ids), n.op("Gather", n.weight(positions, h, scale=0.5), place))
    n.c[x] = h
    present = []
    for i in range(layers):
        y = n.linear(n.layernorm(x, spelled=True), 3 * h)
        q, k, v = (heads(n, p, 1, count, w) for p in n.split(y, h, h, h, axis=2))
        for kind, new in (("key", k), ("value", v)):
            old = n.input(f"past_key_values.{i}.{kind}", n.rng.standard_normal((1, count, past, w), np.float32))
            present.append((n.op("Concat", old, new, axis=2), f"present.{i}.{kind}"))
        k, v = (p[0] for p in present[-2:])
        y = attend(n, q, n.transpose(k, 0, 1, 3, 2), v, w, "script")
        x = n.add(n.linear(n.reshape(y, 1, 1, h), h), x)
        x = n.add(x, n.linear(gelu_tanh(n, n.linear(n.layernorm(x, spelled=True), 4 * h)), h))
    n.output(n.linear(n.layernorm(x, spelled=True), vocabulary, bias=False), "logits")
    for value, name in present:
        n.output(value, name)


@net("gpt2", "GPT-2 small, one token, 64 past", at_least=(1.15, 1.03), aim=(1.25, 1.12), gmac=0.124, bandwidth=True, net={"opset": 14})
def gpt2(n):
    gpt(n, 12, 768, 12, 50257, 1024)


@net("gpt-tiny", "GPT-tiny, one token", at_least=(3, 2.5), aim=(6, 5), gmac=0.001, net={"opset": 14})
def gpt_tiny(n):
    gpt(n, 2, 128, 2, 5000, 256)


# ---- recurrent ----

def recurrent(n, kind, gates, steps=49, wide=40, h=64, layers=2, classes=12):
    x = n.transpose(n.input("x", n.rng.standard_normal((1, steps, wide), np.float32)), 1, 0, 2)
    for _ in range(layers):
        m = n.c[x]
        more = {"linear_before_reset": 1} if kind == "GRU" else {}
        zero = n.const(np.zeros((2, 1, h)))
        y = n.op(kind, x, n.weight(2, gates * h, m, scale=m ** -0.5), n.weight(2, gates * h, h, scale=h ** -0.5),
                 n.weight(2, 2 * gates * h, scale=0.1), "", *([zero] * (1 + (kind == "LSTM"))), direction="bidirectional", hidden_size=h, **more)
        x = n.reshape(n.transpose(y, 0, 2, 1, 3), steps, 1, 2 * h)
    x = n.transpose(x, 1, 0, 2)
    x = n.op("Gather", x, n.const(-1, np.int64), axis=1)
    n.output(n.gemm(x, classes), "y")


@net("lstm", "LSTM, 2 layers both ways, 49 x 40 -> 64", at_least=(1.4, 1.4), aim=(1.8, 1.8), gmac=0.0074, net={"opset": 14})
def lstm(n):
    recurrent(n, "LSTM", 4)


@net("gru", "GRU, same", at_least=(1.4, 1.4), aim=(1.8, 1.8), gmac=0.0056, net={"opset": 14})
def gru(n):
    recurrent(n, "GRU", 3)


# ---- small ----

def perceptron(n, *widths):
    x = n.input("x", n.rng.standard_normal((1, widths[0]), np.float32))
    for m in widths[1:-1]:
        x = n.relu(n.gemm(x, m, 2.0))
    return n.gemm(x, widths[-1])


@net("mlp-iris", "MLP 4-16-16-3", at_least=(5, 5), aim=(20, 20), gmac=0)
def mlp_iris(n):
    n.output(n.op("Softmax", perceptron(n, 4, 16, 16, 3), axis=1), "y")


@net("mlp-digits", "MLP 784-128-64-10", at_least=(5, 5), aim=(20, 20), gmac=0)
def mlp_digits(n):
    n.output(n.op("Softmax", perceptron(n, 784, 128, 64, 10), axis=1), "y")


@net("autoencoder", "Autoencoder 640-128x4-8-128x4-640 (machine sounds)", at_least=(5, 5), aim=(20, 20), gmac=0)
def autoencoder(n):
    n.output(perceptron(n, 640, 128, 128, 128, 128, 8, 128, 128, 128, 128, 640), "y")


@net("kws-dscnn", "Keyword spotting, DS-CNN 64 (49x10)", at_least=(5, 5), aim=(20, 20), gmac=0.0027)
def kws(n):
    x = n.op("Pad", n.image(1, 1, 49, 10), n.ints(0, 0, 4, 1, 0, 0, 5, 1))
    x = n.conv(x, 64, (10, 4), 2, pad=0, act=n.relu)
    for _ in range(4):
        x = n.conv(n.conv(x, 64, 3, g=64, act=n.relu), 64, act=n.relu)
    x = n.op("Flatten", n.op("GlobalAveragePool", x), axis=1)
    n.output(n.op("Softmax", n.gemm(x, 12), axis=1), "y")
