"""Values on the command line (--input x=[1,2]) and inputs that become constants (--freeze x=1)."""
import ctypes
import json
import os
import re
from lib import npy
from lib import onnxfile as onnx
from lib.core import Skip, Test, run, want
from suite.cli import MODEL, Cli

CHECK = "*"

KINDS = (("f", onnx.FLOAT), ("h", onnx.FLOAT16), ("i", onnx.INT32), ("l", onnx.INT64), ("u", onnx.UINT8), ("b", onnx.BOOL))


def echo(c, dims):
    """A model that returns its inputs, one of each type."""
    g = onnx.Graph()
    for name, kind in KINDS:
        g.output(g.node("Identity", [g.input(dims, kind, name)], [name + "y"]), None, kind)
    return c.save("echo.onnx", onnx.model(g))


def values(c):
    """The nesting of a list is its shape; a single value fills the input."""
    model = echo(c, ["n", "m"])
    words = {"f": "[[1.5, -2e3, nan], [inf, 0x10, .5]]", "h": "1.5", "i": "[[-2147483648,2147483647,1e3],[0x1f,+1,-0]]", "l": "-9223372036854775808",
             "u": "ones", "b": "[[true,false,1],[0,true,true]]"}
    args = [x for name, text in words.items() for x in ("--input", f"{name}={text}")]
    for engine in ("ref", "interp", "c"):
        c.run("run", model, *args, "--engine", engine, "-o", "y.npz")
        got = {k: list(v.data) for k, v in npy.load_npz(c.path("y.npz")).items()}
        want(str(got["fy"]) == "[1.5, -2000.0, nan, inf, 16.0, 0.5]", f"f: {got['fy']}")
        want(got["hy"] == [1.5] * 6 and got["iy"] == [-2 ** 31, 2 ** 31 - 1, 1000, 31, 1, 0], f"h, i: {got['hy']} {got['iy']}")
        want(got["ly"] == [-2 ** 63] * 6 and got["uy"] == [1] * 6, f"l, u: {got['ly']} {got['uy']}")
        want(list(map(bool, got["by"])) == [True, False, True, False, True, True], f"b: {got['by']}")
    one = c.run("run", MODEL, "--input", "image=0.25").out
    npy.save(c.path("q.npy"), npy.Array("f32", (1, 1, 8, 8), [0.25] * 64))
    want(one == c.run("run", MODEL, "--input", "image=@q.npy").out, "a value that fills differs from the array")
    with open(c.path("t.ing"), "w") as f:
        f.write('graph (%x "x": f32[2,2], %s "s": i64[]) {\n  %c: f32[] = cast(%s) {to=f32}\n  %y: f32[2,2] = add(%x, %c)\n  return %y "y"\n}\n')
    want(b"11 12 13 14" in c.run("run", "t.ing", "--input", "x=[[1,2],[3,4]]", "--input", "s=10").out, "values for a text")
    want(b"1 1 1 1" in c.run("run", "t.ing", "--input", "x=1", "--freeze", "s=0").out, "a frozen input of a text")
    text = c.run("opt", "t.ing", "--freeze", "s=3", "--stop=none").out.decode()
    want('"s": i64[] = const {3}' in text and "(%1" in text and "%2 \"s\": i64[])" not in text, text)


def products(c):
    """A product of constants is folded although it takes millions of steps, unless the result is larger than its operands."""
    for rows, inner, folded in ((300, 300, True), (1200, 16, False)):
        with open(c.path("p.ing"), "w") as f:
            f.write(f'graph (%a "a": f32[{rows},{inner}], %b "b": f32[{inner},{rows}], %x "x": f32[{rows},{rows}]) {{\n'
                    f'  %p: f32[{rows},{rows}] = contract(%a, %b) {{spec="ik,kj->ij"}}\n  %y: f32[{rows},{rows}] = add(%p, %x)\n  return %y "y"\n}}\n')
        frozen = ("--freeze", "a=2", "--freeze", "b=0.5")
        text = c.run("opt", "p.ing", *frozen, "--stop=dce").out.decode()
        want(("contract" not in text) == folded, f"{rows}x{inner}: contract is {'left' if folded else 'gone'}")
        c.run("run", "p.ing", *frozen, "--input", "x=1", "-o", "p.npz")
        want(set(npy.load_npz(c.path("p.npz"))["y"].data) == {inner + 1.0}, f"{rows}x{inner}: wrong sums")


def wrong_values(c):
    model = echo(c, [2])
    for spec, text in (("f=1,5", "',5' is unexpected at the end"), ("f=one", "'one' is not a number"), ("f=1e40", "out of range"), ("h=70000", "out of range"),
                       ("i=2147483648", "out of range"), ("i=1.5", "not a whole number"), ("u=-1", "out of range"), ("u=256", "out of range"),
                       ("b=2", "not true, false"), ("f=[1,[2]]", "nested"), ("f=[[1],2]", "nested"), ("f=[[1],[2,3]]", "different lengths"),
                       ("f=[1,2", "lacks"), ("f=[1 2]", "lacks a comma"), ("f=", "expected a value after"), ("f=[,]", "lacks a value"), ("f", "expected NAME=VALUE"),
                       ("q=1", "no input 'q'"), ("l=9223372036854775808", "out of range")):
        c.run("run", model, "--input", spec, code=2, text=text)
        c.run("run", model, "--freeze", spec, code=2, text=text)
    c.run("run", model, "--freeze", "f=rand", code=2, text="not random")
    c.run("run", model, "--input", "f=[1,2,3]", code=4, text="input 'f' is f32[2], the array given is f32[3]")
    c.run("run", model, "--input", "f=[[1,2]]", code=4, text="it has 2 dimensions, expected 1")
    c.run("run", model, "--freeze", "f=[1,2]", "--input", "f=[1,3]", code=2, text="is frozen; found other contents")
    c.run("run", model, "--freeze", "f=1", "--input", "f=[1,1]")


def strings(c):
    g = onnx.Graph()
    g.output(g.node("StringNormalizer", [g.input([2], onnx.STRING, "s")], ["y"], case_change_action="UPPER"), None, onnx.STRING)
    model = c.save("s.onnx", onnx.model(g))
    for spec, shown in (('s=["a b",c d]', '"A B" "C D"'), ("s=one, two", '"ONE, TWO" "ONE, TWO"'), ('s="x\\"=]"', '"X"=]" "X"=]"'), ("s=ones", '"ONES" "ONES"')):
        for flag in ("--input", "--freeze"):
            out = c.run("run", model, flag, spec).out.decode()
            want(shown in out, f"{flag} {spec}: {out}")


def rates(c):
    """A branch for each sampling rate, with separate weights."""
    branches = []
    for rate, width in ((16, 3000), (8, 500)):
        b = onnx.Graph(f"b{rate}.")
        b.output(b.node("MatMul", ["x", b.weight(4, width)]), None)
        branches.append(b)
    g = onnx.Graph()
    x, sr = g.input(["batch", 4], name="x"), g.input([], onnx.INT64, "sr")
    cond = g.node("Equal", [sr, g.const([], [16000], onnx.INT64)])
    y = g.node("If", [cond], then_branch=branches[0], else_branch=branches[1])
    g.output(g.node("ReduceSum", [y], ["y"], keepdims=0), None)
    return c.save("rates.onnx", onnx.model(g)), x


def undecided(c):
    """A branch that does not fit, of which a value decides whether it is taken: inspect names --freeze, and refuses nothing."""
    branches = []
    for rows in (4, 5):
        b = onnx.Graph(f"b{rows}.")
        b.output(b.node("MatMul", ["x", b.weight(rows, 2)]), None)
        branches.append(b)
    g = onnx.Graph()
    g.input([1, 4], name="x")
    cond = g.node("Equal", [g.input([], onnx.INT64, "sr"), g.const([], [16000], onnx.INT64)])
    g.output(g.node("If", [cond], ["y"], then_branch=branches[0], else_branch=branches[1]), None)
    model = c.save("half.onnx", onnx.model(g))
    text = c.run("inspect", model).out.decode()
    want("memory is not planned: " in text and "--freeze 'sr=VALUE'" in text and text.endswith("nodes that are refused\n  none\n"), text)
    found = json.loads(c.run("inspect", model, "--json").out)
    want(not found["unsupported"] and "--freeze" in found["memory"]["why"] and [x["name"] for x in found["inputs"]] == ["x", "sr"], f"{found}")
    want(json.loads(c.run("inspect", model, "--freeze", "sr=16000", "--json").out)["memory"]["planned"], "with the value")
    c.run("compile", model, "-o", "n.c", code=4, text="--freeze 'sr=VALUE'")


def frozen(c):
    """The input is not a parameter any more, the other branch and its weights are gone; results are the same."""
    model, _ = rates(c)

    def weights(*flags):
        return json.loads(c.run("inspect", model, "-d", "batch=1", "--json", *flags).out)["memory"]["weights"]

    want(weights() >= 56000, f"both branches are there: {weights()}")
    want(weights("--freeze", "sr=16000") == 48000, "the weights of the other branch are still there")
    want(weights("--freeze", "sr=8000") == 8000, "the weights of the other branch are still there")
    npy.save(c.path("sr.npy"), npy.Array("i64", (), [8000]))
    want(weights("--freeze", "sr=@sr.npy") == 8000, "frozen at a file")
    for rate in ("16000", "8000"):
        for engine in ("ref", "interp", "c"):
            flags = ["-d", "batch=1", "--input", "x=[[1,2,3,-4]]", "--engine", engine]
            want(c.run("run", model, "--freeze", f"sr={rate}", *flags).out == c.run("run", model, "--input", f"sr={rate}", *flags).out, f"{engine} {rate}")
    c.run("verify", model, "--freeze", "sr=8000")
    c.run("bench", model, "--freeze", "sr=8000", "--engine", "interp", "--seconds", "0.001")
    c.run("compile", model, "--freeze", "sr=8000", "-o", "net.c")
    head = open(c.path("net.h"), encoding="utf-8").read()
    want("INPUT0_ELEMENTS" in head and "INPUT1" not in head and re.search(r"net_run\(void \*arena, const float \*\w+, float \*\w+\)", head), head)
    want("freeze sr" in open(c.path("net.c"), encoding="utf-8").read(), "the C does not say what is frozen")
    c.run("build", model, "--freeze", "sr=16000", "-o", "net.o")
    text = c.run("opt", model, "--freeze", "sr=8000").out.decode()
    want("if" not in re.findall(r"[a-z]+", text), "the choice is still there")


def needs(c):
    """inspect of a model whose shape depends on an input proposes --freeze, and does not call an operator unsupported."""
    g = onnx.Graph()
    g.output(g.node("Expand", [g.input([1, 4], onnx.FLOAT, "x"), g.input([2], onnx.INT64, "s")], ["y"]), None, onnx.FLOAT)
    model = c.save("expand.onnx", onnx.model(g))
    got = run([c.env.ingot, "inspect", model], 60, cwd=c.dir)
    text = got.out.decode()
    want(got.rc == 3 and "Expand takes a shape from input 1, which depends on 's': give its contents with --freeze 's=VALUE'" in text and "support" not in text, f"{got.rc}: {text}")
    c.run("inspect", model, "--freeze", "s=[3,4]")


def misleads(c):
    """The hint for an If names an option that every verb has."""
    g, odd, even = onnx.Graph(), onnx.Graph("o."), onnx.Graph("e.")
    odd.output(odd.node("Reshape", ["x", odd.ints(3)]), None)  # impossible: x has four elements
    even.output(even.node("Identity", ["x"]), None)
    g.input([4], name="x")
    g.output(g.node("If", [g.node("Cast", [g.input([], onnx.INT64, "sr")], to=9)], ["y"], then_branch=odd, else_branch=even), None)
    model = c.save("odd.onnx", onnx.model(g))
    for verb in ("run", "compile"):
        got = c.run(verb, model, code=4)
        want("--freeze 'sr=VALUE'" in got.text(), got.text())
        c.run(verb, model, "--freeze", "sr=0")
    c.run("inspect", model, "--freeze", "sr=0")
    c.run("inspect", model, "--input", "sr=0")


def library(c):
    """ingot_freeze and ingot_hint of the library."""
    model, _ = rates(c)
    lib = ctypes.CDLL(os.path.join(c.env.build, "libingot.so"))
    lib.ingot_new.restype = ctypes.c_void_p
    lib.ingot_hint.restype = ctypes.c_char_p
    lib.ingot_message.restype = ctypes.c_char_p
    path = c.path(model).encode()
    for spec, status, inputs in ((b"sr=8000", 0, 1), (b"sr=1.5", 2, 0), (b"nosuch=1", 2, 0)):
        m = ctypes.c_void_p(lib.ingot_new(None))
        want(lib.ingot_open(m, path) == 0, "open")
        want(lib.ingot_freeze(m, spec) == status, f"freeze {spec}")
        if not status:
            want(lib.ingot_import(m, 0) == 0 and lib.ingot_input_count(m) == inputs, "one input is left")
        lib.ingot_free(m)


def silero(c):
    """A real model with a branch for each sampling rate."""
    model = os.path.join(c.env.build, "models", "silero_vad.onnx")
    if not os.path.exists(model):
        raise Skip("build/models/silero_vad.onnx is not there")
    got = c.run("run", model, "--freeze", "sr=16000", code=2, text="for example: ingot run")
    want("input:1=512 -d state:1=1" in got.text(), got.text())
    flags = ["-d", "input:1=512", "-d", "state:1=1"]
    c.run("inspect", model, *flags, "--freeze", "sr=16000")
    c.run("run", model, *flags, "--freeze", "sr=16000", "--input", "state=zeros")
    c.run("run", model, "-d", "input:1=512", "-d", "state:1=512", "--freeze", "sr=16000", code=4, text="expected an initial state")


CASES = (undecided, values, products, wrong_values, strings, frozen, needs, misleads, library, silero)


def tests(env):
    return [Test(f"cli/freeze/{fn.__name__}", lambda fn=fn: fn(Cli(env, "freeze_" + fn.__name__)), cost=1) for fn in CASES]
