"""User mistakes: missing values, wrong names, runs that prove nothing. The message says what would be right, and no file is
lost."""
import json
import os
import shutil
from lib import cfile, npy
from lib import onnxfile as onnx
from lib.core import ROOT, Test, want
from suite.cli import MODEL, Cli
from suite.safety import on_terminal

BYTES, BOXES = (os.path.join(ROOT, "test", "fuzz", "fuzz_tflite", name + ".tflite") for name in ("conv", "detection"))


def model(c, name, op, inputs, **attrs):
    g = onnx.Graph()
    g.output(g.node(op, [g.input(dims, name=x) for x, dims in inputs], ["y"], **attrs), None)
    return c.save(name, onnx.model(g))


def nothing_compared(c):
    """Two engines that both return NaN prove nothing."""
    net = model(c, "root.onnx", "Sqrt", [("x", [3])])
    args = ("verify", net, "--engine", "interp", "--input")
    got = c.run(*args, "x=[-1,-2,-3]", text="warning: output 'y': 3 of 3 are NaN on both sides")
    want("1 of 1 comparisons are empty" in got.text(), got.text())
    want("1.000000000" not in got.out.decode() and "nan" in got.out.decode(), got.out.decode())
    row = json.loads(c.run(*args, "x=[-1,-2,-3]", "--json").out)
    want(row["empty"] == 1 and row["rows"][0]["output"]["cosine"] is None, f"{row}")
    got = c.run(*args, "x=[-1,4,9]")
    want("comparisons are empty" not in got.text() and "1 of 3 are NaN on both sides" in got.out.decode(), f"{got.text()}{got.out.decode()}")
    want("NaN" not in c.run(*args, "x=[1,4,9]").out.decode(), "NaN of roots")


def endings(c):
    """Files do not get names with a misleading suffix, for programs of the language and for quantized models."""
    with open(c.path("two.ch"), "w") as f:
        f.write("fn twice(x: int64) -> int64 { x * 2 }\nprint(twice(2))\n")
    for name, code in (("p.onnx", 2), ("p.js", 2), ("p.wasm", 4)):
        c.run("build", "two.ch", "-o", name, code=code)
        want(not os.path.exists(c.path(name)), f"{name} was written")
    c.run("completions", code=2, text="bash|zsh|fish: missing")
    c.run("quantize", MODEL, "--method", "weights8", "-o", "q.tflite", code=2, text="is not written as '.tflite'")


def bounds(c):
    """--max-shapes accepts names of dimensions, as -d does."""
    net = model(c, "sum.onnx", "Add", [("x", ["N", 3]), ("z", ["N", "M"])])
    for spec in ("N=4,M=3", "x:0=4,z:1=3", "x:4x3,M=3", "z:4x3"):
        c.run("compile", net, "--max-shapes", spec, "-o", "n.c")
        with open(c.path("n.h")) as f:
            want(cfile.macro(f.read(), "N_SIZE0_MAX") == 4, f"{spec}: another bound")
    c.run("compile", net, "--max-shapes", "K=4", "-o", "n.c", code=2, text="no input has a dimension named 'K'")


def lists(c):
    net = model(c, "flat.onnx", "Neg", [("X", [None, 4])])
    c.run("run", net, "--input", "X=[1,2,3,4]", code=4, text="it has 1 dimension, expected 2: a list in a list, [[...]]")
    c.run("run", net, "--input", "X=[[1,2,3,4]]")


def one_name(c):
    """A dimension without a name has the same generated name everywhere, and -d accepts it."""
    net = model(c, "open.onnx", "Neg", [("X", [None, 4])])
    want("X: f32[X_0,4]" in c.run("inspect", net).out.decode(), "inspect")
    c.run("run", net, text="input 'X': batch dimension 0 (X_0) is not known, assuming 1")
    c.run("run", net, "--input", "X=[1,2]", code=4, text="input 'X' is f32[X_0,4]")
    c.run("run", net, "-d", "rows=2", code=2, text="inputs are X: f32[X_0,4]")
    want("f32[2,4]" in c.run("run", net, "-d", "X_0=2").out.decode(), "-d X_0=2")


def engine_first(c):
    net = model(c, "open.onnx", "Neg", [("X", [None, 4])])
    got = c.run("verify", net, "--engine", "gpu", code=2, text="unknown engine 'gpu'; expected")
    want(len(got.text().splitlines()) == 1 and not got.out, f"{got.text()}{got.out}")


def models_stay(c):
    """A missing option value before a model: the model is not overwritten."""
    shutil.copy(MODEL, c.path("keep.onnx"))
    shutil.copy(BYTES, c.path("keep.bin"))
    before = {name: os.path.getsize(c.path(name)) for name in ("keep.onnx", "keep.bin")}
    for args in (("inspect", "--html", "keep.onnx", MODEL), ("inspect", "--html", "keep.bin", MODEL), ("verify", "--html", "keep.onnx", MODEL, "-d", "batch=1"),
                 ("opt", "-o", "keep.bin", MODEL, "-d", "batch=1")):
        c.run(*args, code=2, text="refusing to overwrite a model")
    want(before == {name: os.path.getsize(c.path(name)) for name in before}, "a model was written over")
    for _ in range(2):  # a page may be overwritten
        c.run("inspect", "--html", "page.html", MODEL)


def folders(c):
    """Output paths that cannot be written: one exit code."""
    c.run("inspect", MODEL, "--html", "/", code=5, text="is a directory")
    c.run("inspect", MODEL, "--html", "/dev/null/page.html", code=5, text="cannot write")


def bytes_already(c):
    """int8 models are not quantized again; some floats in them may be."""
    for net in (BYTES, BOXES):
        got = c.run("compile", net, "--ram", "64", "-o", "n.c", code=3, text="more than the 64 of --ram")
        want("quantization to int8" not in got.text(), got.text())
    c.run("compile", MODEL, "-d", "batch=1", "--ram", "64", "-o", "n.c", code=3, text="quantization to int8")


def stack_alone(c):
    """If everything except the stack fits, the message says that the stack is an upper bound."""
    told = json.loads(c.run("inspect", "--json", BYTES).out)["memory"]
    spare = "an upper bound for all compilers and flags"
    c.run("compile", BYTES, "--ram", str(told["ram"] - told["stack"] + 100), "-o", "n.c", code=3, text=spare)
    want(spare not in c.run("compile", BYTES, "--ram", "64", "-o", "n.c", code=3).text(), "more than the stack does not fit")


def whose(c):
    """The C names its model file, not the graph name of a converter."""
    shutil.copy(MODEL, c.path("mine.onnx"))
    c.run("compile", "mine.onnx", "-d", "batch=1", "-o", "n.c", "--no-selftest")
    with open(c.path("n.h")) as f:
        want(" from mine.onnx\n" in f.readline(), "the header names another source")


def twice(c):
    """A domain that a file lists twice."""
    with open(model(c, "net.onnx", "Neg", [("x", [2])]) and c.path("net.onnx"), "rb") as f:
        data = f.read()
    c.save("net.onnx", data + onnx.chunk(8, onnx.chunk(1, "") + onnx.number(2, 17)))
    want(c.run("inspect", "net.onnx").out.decode().splitlines()[0].count("ai.onnx 17") == 1, "told twice")


def constants(c):
    """opt shortens long constants for readers, in dumps too; such a text is refused as input; a file has all constants. A
    terminal does not get megabytes."""
    g = onnx.Graph()
    g.output(g.node("Gemm", [g.node("Gemm", [g.input([1, 300], name="x"), g.weight(300, 400)]), g.weight(400, 8), g.weight(8)], ["y"]), None)
    net = c.save("wide.onnx", onnx.model(g))
    short, full = c.run("opt", net, "--stop=none").out, c.run("opt", net, "--stop=none", "--constants", "all").out
    want(len(short) < 2000 and len(full) > 400000 and short.count(b", ...}") == 2 and b"..." not in full, f"{len(short)}, {len(full)}: {short[:300]}")
    want(c.run("opt", net, "--stop=none", "-o", "full.ing") and open(c.path("full.ing"), "rb").read() == full, "-o shortens")
    want(len(c.run("opt", net, "--dump=all").out) < 100000, "--dump=all is long")
    want(c.run("opt", net, "--dump=infer", "--constants=all").out == b"# after infer\n" + full, "--dump --constants all")
    c.save("short.ing", short)
    c.run("run", "short.ing", code=4, text="--constants all or -o FILE")
    c.save("few.ing", b'graph (%x "x": f32[2]) {\n  %c: f32[2] = const {1, ...}\n  %y: f32[2] = add(%x, %c)\n  return %y "y"\n}\n')
    c.run("run", "few.ing", code=4, text="--constants all or -o FILE")
    c.run("opt", net, "--constants", "some", code=2, text="expected all or brief")
    c.run("opt", net, "--constants", "brief", "-o", "x.ing", code=2, text="expected all with --output")
    for args in (["compile", net, "--weights", "literal"], ["opt", net, "--constants=all", "--dump=infer,dce,fold"]):
        said = on_terminal([c.env.ingot, *args], c.dir, "stdout", code=2)
        want(len(said) < 1000000, f"{args}: {len(said)} bytes on a terminal")
        c.run(*args)


def columns(c):
    lines = [x for x in c.run("--help").out.decode().splitlines() if x.startswith("  ") and "usage" not in x]
    verbs = [x for x in lines if x[2] != " "]
    want(len(verbs) > 15 and len({len(x) - len(x[2:].split(None, 1)[1]) for x in verbs}) == 1, "columns:\n" + "\n".join(verbs))


def hints(c):
    """Names of other tools and of habit are answered with the name that works here."""
    named = model(c, "named.onnx", "Neg", [("x", ["n", 3])])
    two = model(c, "two.onnx", "Add", [("x", ["n", 3]), ("z", ["m", 3])])
    c.run("run", named, "-d", "batch=4", code=2, text="did you mean -d n=4?")
    c.run("run", named, "-d", "rows=4", code=2, text="did you mean -d n=4?")
    c.run("run", two, "-d", "batch=4", code=2, text="did you mean -d n=4?")
    want("did you mean" not in c.run("run", two, "-d", "rows=4", code=2).text(), "a guess among two dimensions")
    for name in ("x_1=3", "x_1=4"):
        c.run("run", named, "-d", name, code=2, text="no input has a dimension named 'x_1' to set")
    c.run("run", named, "--engine", "gpu", code=2, text="did you mean 'cuda'?")
    c.run("run", named, "--engine", "cpu", code=2, text="did you mean 'c'?")
    c.run("report", named, code=2, text="did you mean 'inspect'? --html FILE")
    for verb in ("compile", "build"):
        c.run(verb, named, "--march", "cortex-m7", "-o", "n.c" if verb == "compile" else "n.o", code=2, text="a Cortex-M takes --march cortex-m or cortex-m4")
    c.run("play", "no.gguf", "-p", "hi", "-n", "-2", code=2, text="expected a whole number")
    c.run("play", "no.gguf", "-p", "hi", "-n", "-1", code=5, text="No such file")
    for verb, group in (("play", "generation:"), ("opt", "")):
        lines = c.run(verb, "--help-all").out.decode().split("\n")
        at, = (i for i, line in enumerate(lines) if line.startswith("  --stop "))
        heads = [line for line in lines[:at] if line and line[0] != " "]
        want("passes:" not in lines and heads[-1] == group if group else "pass" in lines[at], f"{verb}: {lines}")


def unsupported_once(c):
    g = onnx.Graph()
    g.output(g.node("NoSuch", [g.node("NorThis", [g.input([2], name="x")], ["t"])], ["y"]), None)
    net = c.save("none.onnx", onnx.model(g))
    lines = c.run("bench", net, "--seconds", "0.01", code=3).text().splitlines()
    for name in ("NoSuch", "NorThis"):
        want(sum(f"'{name}'" in x or f"({name})" in x for x in lines) == 1, f"{name} is not named once: {lines}")


def grown(c):
    """Weights that Winograd's method makes much larger are told, with the option that avoids it."""
    g = onnx.Graph()
    g.output(g.node("Conv", [g.input([1, 256, 28, 28], name="x"), g.weight(256, 256, 3, 3)], ["y"], pads=[1, 1, 1, 1]), None)
    net = c.save("wide.onnx", onnx.model(g))
    text = c.run("compile", net, "--march", "avx2", "-o", "n.c", text="the weights grow from 2.4 to ").text()
    want("--optimize-for size avoids it" in text, text)
    for how in (["--optimize-for", "size"], ["--ram", "4M"]):
        want("grow" not in c.run("compile", net, "--march", "avx2", *how, "-o", "n.c").text(), f"{how}: without the growth")


CASES = (hints, grown, unsupported_once, endings, nothing_compared, bounds, lists, one_name, engine_first, models_stay, folders, bytes_already, stack_alone, whose, twice, constants, columns)


def tests(env):
    return [Test(f"cli/slips/{fn.__name__}", lambda fn=fn: fn(Cli(env, "slips_" + fn.__name__)), cost=1) for fn in CASES]
