"""Writes models with state and inputs of many steps: mkstate.py OUT [MODELS] writes
OUT/NAME/{model.onnx,inputs.npz,expected.npz} and OUT/cases.json.

Runs with the Python of build/venv.
Weights and inputs come from fixed seeds.
ONNX Runtime computes the expected outputs; each result that is a state becomes an input of the next step.
Entries of the archives are named STEP/NAME.
MODELS: folder with the real models; the streaming ones are included.
"""
import json
import os
import shutil
import sys

import numpy as np
import onnx
from onnx import helper as h

import oracle
from mksymbolic import F, I, Net

STEPS = 100
HEADS, WIDTH, VOCAB, LAYERS = 2, 8, 17, 2
DIM = HEADS * WIDTH


class Named(Net):
    """Names the outputs without adding copies."""

    def model(self, inputs, outputs):
        for node in self.nodes:
            for i, name in enumerate(node.output):
                for out, (_, inner) in outputs.items():
                    if name == inner:
                        node.output[i] = out
            for i, name in enumerate(node.input):
                for out, (_, inner) in outputs.items():
                    if name == inner:
                        node.input[i] = out
        g = h.make_graph(self.nodes, "net", [h.make_tensor_value_info(n, k, s) for n, (k, s) in inputs.items()],
                         [h.make_tensor_value_info(n, k, None) for n, (k, _) in outputs.items()], self.inits)
        return h.make_model(g, ir_version=8, opset_imports=[h.make_opsetid("", 17)])


def norm(net, x):
    return net.op("LayerNormalization", x, net.const(np.ones(DIM, np.float32)), net.const(np.zeros(DIM, np.float32)), axis=-1)


def heads(net, x):
    x = net.op("Reshape", x, net.ints(0, 0, HEADS, WIDTH))
    return net.op("Transpose", x, perm=[0, 2, 1, 3])


def attend(net, x, key, value, query, mask):
    scores = net.op("MatMul", query, net.op("Transpose", key, perm=[0, 1, 3, 2]))
    scores = net.op("Mul", scores, net.const(np.float32(WIDTH ** -0.5)))
    if mask:
        scores = net.op("Where", mask, scores, net.const(np.float32(-1e9)))
    y = net.op("MatMul", net.op("Softmax", scores, axis=-1), value)
    y = net.op("Reshape", net.op("Transpose", y, perm=[0, 2, 1, 3]), net.ints(0, 0, DIM))
    return net.op("Add", x, net.op("MatMul", y, net.weight(DIM, DIM)))


def gpt():
    """A decoder with a growing cache; the tokens of a step attend causally."""
    net = Named(1)
    past = [f"past_key_values.{i}.{k}" for i in range(LAYERS) for k in ("key", "value")]
    inputs = {"ids": (I, [1, "n"])}
    inputs.update({name: (F, [1, HEADS, "past_length", WIDTH]) for name in past})
    before, now = net.op("Squeeze", net.extent(past[0], 2)), net.op("Squeeze", net.extent("ids", 1))
    end = net.op("Add", before, now)
    place = net.op("Range", before, end, net.const(np.int64(1)))
    column = net.op("Range", net.const(np.int64(0)), end, net.const(np.int64(1)))
    mask = net.op("LessOrEqual", column, net.op("Unsqueeze", place, net.ints(1)))
    x = net.op("Add", net.op("Gather", net.weight(VOCAB, DIM, scale=1), "ids"),
               net.op("Gather", net.weight(STEPS * 3, DIM, scale=.3), place))
    outputs = {}
    for i in range(LAYERS):
        y = norm(net, x)
        query, key, value = (heads(net, net.op("MatMul", y, net.weight(DIM, DIM))) for _ in range(3))
        key = net.op("Concat", f"past_key_values.{i}.key", key, axis=2)
        value = net.op("Concat", f"past_key_values.{i}.value", value, axis=2)
        outputs[f"present.{i}.key"], outputs[f"present.{i}.value"] = (F, key), (F, value)
        x = attend(net, x, key, value, query, mask)
        y = net.op("Relu", net.op("MatMul", norm(net, x), net.weight(DIM, 2 * DIM)))
        x = net.op("Add", x, net.op("MatMul", y, net.weight(2 * DIM, DIM)))
    logits = net.op("MatMul", norm(net, x), net.weight(DIM, VOCAB))
    return net.model(inputs, {"logits": (F, logits), **outputs})


def last(net, x, axis, n):
    return net.op("Slice", x, net.ints(-n), net.ints(2 ** 62), net.ints(axis))


def window():
    """Attention over the last 12 steps."""
    net, w = Named(2), 12
    query, key, value = (heads(net, net.op("MatMul", "x", net.weight(DIM, DIM))) for _ in range(3))
    key = last(net, net.op("Concat", "cache_k_in", key, axis=2), 2, w)
    value = last(net, net.op("Concat", "cache_v_in", value, axis=2), 2, w)
    y = attend(net, "x", key, value, query, None)
    shape = [1, HEADS, w, WIDTH]
    return net.model({"x": (F, [1, 1, DIM]), "cache_k_in": (F, shape), "cache_v_in": (F, shape)},
                     {"y": (F, y), "cache_k_out": (F, key), "cache_v_out": (F, value)})


def causal(chunk):
    """Two convolutions over time, each with the past samples it needs; a step adds `chunk` samples."""
    net, x, states, inputs = Named(3), "x", {}, {"x": (F, [1, 3, chunk])}
    for i, (cin, cout, k) in enumerate(((3, 4, 5), (4, 2, 3))):
        inputs[f"conv{i}.cache"] = (F, [1, cin, k - 1])
        x = net.op("Concat", f"conv{i}.cache", x, axis=2)
        states[f"conv{i}.cache_next"] = (F, last(net, x, 2, k - 1))
        x = net.op("Tanh", net.op("Conv", x, net.weight(cout, cin, k), net.weight(cout)))
    return net.model(inputs, {"y": (F, x), **states})


def lstm():
    net, size = Named(4), 6
    y, hn, cn = net.op("LSTM", "x", net.weight(1, 4 * size, 3), net.weight(1, 4 * size, size), net.weight(1, 8 * size), "",
                       "h0", "c0", outputs=3, hidden_size=size)
    return net.model({"x": (F, [2, 1, 3]), "h0": (F, [1, 1, size]), "c0": (F, [1, 1, size])},
                     {"y": (F, y), "hn": (F, hn), "cn": (F, cn)})


def static():
    """A cache of fixed length in which a step replaces the row that an input names."""
    net, rows = Named(5), 16
    cache = net.op("ScatterElements", "kv_in", net.op("Expand", net.op("Reshape", "at", net.ints(1, 1, 1)), net.ints(1, 1, DIM)),
                   net.op("MatMul", "x", net.weight(DIM, DIM)), axis=1)
    scores = net.op("MatMul", "x", net.op("Transpose", cache, perm=[0, 2, 1]))
    y = net.op("MatMul", net.op("Softmax", scores, axis=-1), cache)
    return net.model({"x": (F, [1, 1, DIM]), "at": (I, [1]), "kv_in": (F, [1, rows, DIM])}, {"y": (F, y), "kv_out": (F, cache)})


def gpt_steps(sizes):
    rng = np.random.default_rng(6)
    return [{"ids": rng.integers(0, VOCAB, (1, sizes[i % len(sizes)]), np.int64)} for i in range(STEPS)]


def float_steps(*shape, **more):
    rng = np.random.default_rng(7)
    return [{"x": rng.standard_normal(shape).astype(np.float32), **{k: f(i) for k, f in more.items()}} for i in range(STEPS)]


def audio_steps(n, **more):
    """A tone that appears and disappears in noise."""
    rng, t = np.random.default_rng(8), np.arange(STEPS * n) / 16000
    wave = np.sin(2 * np.pi * 180 * t) * (np.sin(2 * np.pi * t) > 0) * .3 + rng.standard_normal(STEPS * n) * .02
    return [{"input": wave[None, i * n:(i + 1) * n].astype(np.float32), **more} for i in range(STEPS)]


def cases(models):
    """Rows of name, model, steps, pairs of state, options of ingot, ways to keep the state."""
    pairs = {f"past_key_values.{i}.{k}": f"present.{i}.{k}" for i in range(LAYERS) for k in ("key", "value")}
    bound = ["--max-shapes", f"past_key_values.0.key:1x{HEADS}x{{}}x{WIDTH}"]
    two = {"cache_k_in": "cache_k_out", "cache_v_in": "cache_v_out"}
    conv = {f"conv{i}.cache": f"conv{i}.cache_next" for i in range(2)}
    yield "gpt", gpt(), gpt_steps([1]), pairs, ["-d", "n=1", bound[0], bound[1].format(STEPS - 1)], "append"
    yield "gpt-chunks", gpt(), gpt_steps([3, 1, 1, 2]), pairs, [bound[0], bound[1].format(STEPS * 2), "--max-shapes", "ids:1x3"], \
        "append"
    yield "window", window(), float_steps(1, 1, DIM), two, [], "ring"
    yield "causal", causal(1), float_steps(1, 3, 1), conv, [], "ring"
    sizes = [{"x": np.concatenate([s["x"]] * (1 + i % 2), 2)} for i, s in enumerate(float_steps(1, 3, 1))]
    yield "causal-open", causal("n"), sizes, conv, ["--max-shapes", "x:1x3x2"], "ring"
    yield "causal-chunks", causal(20), float_steps(1, 3, 20), conv, [], "copy"
    yield "lstm", lstm(), float_steps(2, 1, 3), {"h0": "hn", "c0": "cn"}, [], "copy"
    yield "static", static(), float_steps(1, 1, DIM, at=lambda i: np.array([i % 16], np.int64)), {"kv_in": "kv_out"}, [], "update"
    path = os.path.join(models, "silero_vad_op18_ifless.onnx")
    if os.path.exists(path):
        yield "silero", onnx.load(path), audio_steps(512, sr=np.array(16000, np.int64)), {"state": "stateN"}, \
            ["--shapes", "input:1x512,state:2x1x128"], "copy"
    path = os.path.join(models, "silero_vad_v6.onnx")
    if os.path.exists(path):
        yield "silero-v6", onnx.load(path), audio_steps(576), {"h": "hn", "c": "cn"}, ["-d", "seq_len=1"], "copy"


def first(model, name):
    """Returns zeros; a symbolic extent is 0 where the state grows, else 1."""
    for v in model.graph.input:
        if v.name == name:
            open_extent = 0 if "past" in name else 1
            return np.zeros([d.dim_value or open_extent for d in v.type.tensor_type.shape.dim], np.float32)
    raise SystemExit(f"no input {name}")


def main(out, models=""):
    shutil.rmtree(out, ignore_errors=True)
    found = []
    for name, model, steps, pairs, options, way in cases(models):
        folder = os.path.join(out, name)
        os.makedirs(folder)
        onnx.save(model, os.path.join(folder, "model.onnx"))
        session = oracle.session(model.SerializeToString())
        state = {i: first(model, i) for i in pairs}
        names, inputs, expected = [o.name for o in session.get_outputs()], {}, {}
        for i, given in enumerate(steps):
            got = dict(zip(names, session.run(None, {**given, **state})))
            state = {a: got[b] for a, b in pairs.items()}
            inputs.update({f"{i}/{k}": v for k, v in given.items()})
            expected.update({f"{i}/{k}": v for k, v in got.items() if k not in pairs.values()})
        np.savez(os.path.join(folder, "inputs.npz"), **inputs)
        np.savez(os.path.join(folder, "expected.npz"), **expected)
        found.append({"name": name, "folder": folder, "steps": len(steps), "pairs": pairs, "options": options, "way": way,
                      "sizes": {"gpt-chunks": {"n": ["ids", 1]}, "causal-open": {"n": ["x", 2]}}.get(name, {})})
    with open(os.path.join(out, "cases.json"), "w") as f:
        json.dump(found, f)


if __name__ == "__main__":
    main(*sys.argv[1:])
