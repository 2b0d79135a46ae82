"""Several models in one C file: each entry gives the bits of its model alone, also in turns, with its own state in one arena.

Equal weights are stored once, equal kernels are written once, and there is one self-test.
The models are an encoder and a decoder that share an embedding and a projection.
"""
import ctypes
import os
import re

from lib import cpu, npy
from lib import onnxfile as onnx
from lib.core import Test, must, want
from suite.cli import Cli

WORDS, WIDTH, LENGTH = 50, 32, 7


def values(n, step):
    return [((i * step) % 97 - 48) / 64 for i in range(n)]


def begin():
    g = onnx.Graph()
    return g, g.const([WORDS, WIDTH], values(WORDS * WIDTH, 37)), g.const([WIDTH, WIDTH], values(WIDTH * WIDTH, 29))


def models(c):
    """encoder: ids -> memory; decoder: id, h, memory -> y, h."""
    g, words, w = begin()
    x = g.node("Gather", [words, g.input([LENGTH], onnx.INT64, "ids")])
    g.output(g.node("Tanh", [g.node("MatMul", [x, w])], ["memory"]), [LENGTH, WIDTH])
    c.save("encoder.onnx", onnx.model(g))
    g, words, w = begin()
    x = g.node("Gather", [words, g.input([1], onnx.INT64, "id")])
    h = g.node("Tanh", [g.node("MatMul", [g.node("Add", [x, g.input([1, WIDTH], name="h_in")]), w])], ["h_out"])
    memory = g.input([LENGTH, WIDTH], name="memory")
    near = g.node("Softmax", [g.node("MatMul", [h, g.node("Transpose", [memory], perm=[1, 0])])])
    g.output(g.node("MatMul", [g.node("MatMul", [near, memory]), w], ["y"]), [1, WIDTH])
    g.output(h, [1, WIDTH])
    c.save("decoder.onnx", onnx.model(g))


def number(text, name):
    return int(re.search(rf"define {name} (\d+)", text)[1])


class Program:
    """The library of both, with an arena."""

    def __init__(self, c, *options):
        c.run("build", "encoder.onnx", "decoder.onnx", "--state", "h_in=h_out", *options, "-o", "pair.so", "--quiet")
        self.head = open(c.path("pair.h"), encoding="utf-8").read()
        self.lib = ctypes.CDLL(c.path("pair.so"))
        room = max(number(self.head, "PAIR_ARENA_BYTES"), number(self.head, "PAIR_SELFTEST_BYTES"))
        self.memory = ctypes.create_string_buffer(room + 64)
        self.arena = ctypes.c_void_p(ctypes.addressof(self.memory) + -ctypes.addressof(self.memory) % 64)
        want(self.lib.pair_selftest(self.arena) == 0, "the self-test fails")
        ctypes.memset(self.arena, 0, room)
        self.lib.pair_decoder_reset(self.arena)

    def encode(self, ids):
        out = (ctypes.c_float * (LENGTH * WIDTH))()
        want(self.lib.pair_encoder_run(self.arena, (ctypes.c_int64 * LENGTH)(*ids), out) == 0, "the encoder refuses")
        return list(out)

    def decode(self, word, memory):
        out = (ctypes.c_float * WIDTH)()
        want(self.lib.pair_decoder_run(self.arena, (ctypes.c_int64 * 1)(word), (ctypes.c_float * len(memory))(*memory), out) == 0, "the decoder refuses")
        return list(out)


def alone(c, model, arrays, *options):
    npy.save_npz(c.path("in.npz"), arrays)
    c.run("run", model, "--inputs", "in.npz", "-o", "out.npz", "--quiet", *options)
    return {name: list(a.data) for name, a in npy.load_npz(c.path("out.npz")).items()}


def pair(c, march, *options):
    """In turns: data that the encoder leaves in the arena do not change the state of the decoder."""
    if march != "multi":
        cpu.need(march)
    models(c)
    p = Program(c, "--march", march, *options)
    ids = [3, 1, 4, 1, 5, 9, 2]
    memory = p.encode(ids)
    one = alone(c, "encoder.onnx", {"ids": npy.Array("i64", (LENGTH,), ids)}, "--march", march, "--engine", "interp")
    want(memory == one["memory"], "the encoder gives other bits than its model alone")
    arrays = {"id": npy.Array("i64", (1,), [6]), "memory": npy.Array("f32", (LENGTH, WIDTH), memory)}
    for steps in (1, 2, 3):
        y = p.decode(6, memory)
        p.encode([7] * LENGTH)
        one = alone(c, "decoder.onnx", arrays, "--march", march, "--engine", "interp", "--state", "h_in=h_out", "--steps", str(steps))
        want(y == one["y"], f"step {steps}: the decoder gives other bits than its model alone")
    if c.env.python:
        judge(c, p, ids)


def judge(c, p, ids):
    """The same sequence of runs in ONNX Runtime."""
    ort = ["--engine", "onnxruntime", "--python", c.env.python]
    memory = alone(c, "encoder.onnx", {"ids": npy.Array("i64", (LENGTH,), ids)}, *ort)["memory"]
    h = [0.0] * WIDTH
    p.lib.pair_decoder_reset(p.arena)
    for word in (6, 2):
        got = alone(c, "decoder.onnx", {"id": npy.Array("i64", (1,), [word]), "memory": npy.Array("f32", (LENGTH, WIDTH), memory),
                                        "h_in": npy.Array("f32", (1, WIDTH), h)}, *ort)
        h = got["h_out"]
        mine = p.decode(word, p.encode(ids))
        want(max(abs(a - b) for a, b in zip(mine, got["y"])) < 1e-5, f"word {word}: {mine[:4]} is not {got['y'][:4]}")


def threads(c):
    models(c)
    p = Program(c, "--march", "sse2", "--threads", "2", "--threads-grain", "1")
    q = p.encode([1] * LENGTH)
    want(p.lib.pair_threads_start(p.arena, 2) == 2, "no second thread")
    want(p.encode([1] * LENGTH) == q and p.decode(1, q), "threads change bits")
    p.lib.pair_threads_stop(p.arena)


def shares(c):
    """Shared tables exist once; a kernel that both call is one function; states do not overlap."""
    models(c)
    must([c.env.ingot, "compile", c.path("encoder.onnx"), c.path("decoder.onnx"), "--quiet", "-o", c.path("both.c")], "compile")
    head = open(c.path("both.h"), encoding="utf-8").read()
    table = 4 * (WORDS * WIDTH + WIDTH * WIDTH)
    want(table <= number(head, "BOTH_WEIGHT_BYTES") < table + 200, head)
    for name in ("encoder", "decoder"):
        c.run("compile", f"{name}.onnx", "--quiet", "-o", f"{name}.c")
        one = open(c.path(name + ".h"), encoding="utf-8").read()
        want(number(one, name.upper() + "_WEIGHT_BYTES") >= table, "the model alone has fewer weights")
        want(number(one, name.upper() + "_ARENA_BYTES") <= number(head, "BOTH_ARENA_BYTES"), "the arena is too small")
    os.rename(c.path("decoder.onnx"), c.path("again.onnx"))
    c.run("compile", "again.onnx", "--state", "h_in=h_out", "--quiet", "-o", "one.c")
    c.save("other.onnx", open(c.path("again.onnx"), "rb").read())
    c.run("compile", "--state", "h_in=h_out", "again.onnx", "other.onnx", "--quiet", "--weights", "file", "-o", "two.c")
    one, two = (open(c.path(n), encoding="utf-8").read() for n in ("one.h", "two.h"))
    want(number(two, "TWO_ARENA_BYTES") == number(one, "ONE_ARENA_BYTES") + 4 * WIDTH, "two states, one arena")
    kernels = [len(re.findall(r"^static void", open(c.path(n), encoding="utf-8").read(), re.M)) for n in ("one.c", "two.c")]
    want(kernels[0] == kernels[1], f"kernels of a model and of two that are equal: {kernels}")
    want(os.path.getsize(c.path("two.bin")) < table + 500, "the file of weights has them twice")


def refused(c):
    models(c)
    both = ["encoder.onnx", "decoder.onnx"]
    os.makedirs(c.path("more"))
    os.link(c.path("encoder.onnx"), c.path("more/Encoder.onnx"))
    c.run("compile", "encoder.onnx", "more/Encoder.onnx", code=2, text="two models are named 'Encoder'")
    c.run("compile", *both, "--caller", code=3, text="--caller: expected a single model")
    c.run("compile", *both, "--profile", code=3, text="--profile: expected a single model")
    c.run("compile", *both, "--ram", "1M", code=3, text="expected a single model")
    c.run("build", *both, "-o", "prog", code=3, text="a program runs one model")
    c.run("build", *both, "--tune", "-o", "x.o", code=2, text="--tune accepts one model")
    c.run("run", *both, code=2, text="decoder.onnx: unexpected argument")
    c.run("compile", "encoder.onnx", "batch=1", code=2, text="use -d for dimensions")
    c.run("compile", "encoder.onnx", "no-such.onnx", code=5, text="no-such.onnx")
    c.run("compile", "encoder.onnx", "-d", "nosuch=1", "decoder.onnx", code=2, text="encoder.onnx: no input has a dimension named 'nosuch'")
    c.run("compile", "encoder.onnx", "decoder.onnx", "--state", "a=b", code=2, text="decoder.onnx: 'a=b': expected INPUT=OUTPUT")


def tests(env):
    cases = [Test("entries/" + fn.__name__, lambda fn=fn: fn(Cli(env, "entries_" + fn.__name__)), cost=2) for fn in (threads, shares, refused)]
    for name, options in {"scalar": [], "avx2": ["--weights", "text"], "multi": []}.items():
        cases.append(Test(f"entries/pair/{name}", lambda name=name, options=options: pair(Cli(env, "entries_" + name), name, *options), cost=4))
    return cases
