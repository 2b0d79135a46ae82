"""Dimensions on the command line, given and missing: one table of symbols for all inputs, and one message that names every
missing one and a command."""
import json
import shlex
from lib import npy
from lib import onnxfile as onnx
from lib.core import Test, run, want
from suite.cli import Cli

CHECK = "*"


def total(c, name, inputs):
    """A model that adds all its inputs."""
    g = onnx.Graph()
    sums = [g.node("ReduceSum", [g.input(dims, name=x)], keepdims=0) for x, dims in inputs]
    g.output(g.node("Sum", sums, ["y"]), None)
    return c.save(name, onnx.model(g))


def example(c, got):
    """Runs the command that the message proposes."""
    line = next((x for x in got.text().splitlines() if x.startswith("ingot: for example: ingot ")), None)
    want(line, f"no example in {got.text()}")
    c.run(*shlex.split(line.split(": ingot ", 1)[1]))
    return line


def one_table(c):
    """The batch of one input is the batch of all, whichever comes first."""
    inputs = [("state", [2, "batch", 4]), ("x", ["batch", "sequence"])]
    for name, order in (("a.onnx", inputs), ("b.onnx", inputs[::-1])):
        got = c.run("run", total(c, name, order), "-d", "sequence=512", text="batch dimension 0 (batch) is not known, assuming 1")
        want(got.text().count("assuming 1") == 1, f"said more than once: {got.text()}")
        for flags in (["-d", "batch=3"], ["-d", "x:0=3"], ["-d", "state:1=3"], ["--input", "state=zeros", "--shapes", "state:2x3x4"]):
            text = c.run("opt", name, "--stop=none", "-d", "sequence=5", *flags).out.decode()
            want('"x": f32[3,5]' in text and '"state": f32[2,3,4]' in text, f"{flags}: {text[:200]}")


def all_missing(c):
    """Every missing dimension is in one message with one command that works."""
    model = total(c, "m.onnx", [("x", ["batch", "width"]), ("u", [1, None, "height"]), ("v", [1, "a b"])])
    for verb, flags in (("run", ["--seed", "1"]), ("compile", ["-o", "with space.c"]), ("verify", ["--engine", "interp"]),
                        ("bench", ["--engine", "interp", "--seconds", "0.001"])):
        got = c.run(verb, model, *flags, code=2)
        for word in ("'width' (dimension 1 of input 'x')", "dimension 1 of input 'u'", "'height'", "'a b'"):
            want(got.text().count(word) == 1, f"{verb} does not name {word} once: {got.text()}")
        want(f"ingot {verb} {model} {flags[0]}" in example(c, got), "the example is another command")
    want("-d width=" in example(c, c.run("inspect", model)), "inspect gives no example")
    c.run("run", model, "--max-shapes", "x:4x4,u:1x4x4,v:1x4", code=2, text="-d 'x:0=N' -d 'x:1=N' -d 'u:1=N' -d 'u:2=N' -d 'v:1=N'")
    c.run("run", total(c, "none.onnx", [("x", None), ("u", [1, "n"])]), code=2, text="--shapes 'x:AxB' -d 'n=N'")


def made_to_fit(c):
    """The proposed numbers fit the model: a window needs its length, a product equal extents."""
    g = onnx.Graph()
    g.output(g.node("Conv", [g.input(["n", 1, "t"], name="x"), g.weight(1, 1, 200)], ["y"]), None)
    c.save("conv.onnx", onnx.model(g))
    want("t=512" in example(c, c.run("run", "conv.onnx", code=2)), "128 does not fit a window of 200")
    g = onnx.Graph()
    total_of_x = g.node("ReduceSum", [g.input([None, None], name="x")], keepdims=0)
    rows = g.node("Reshape", [g.input([2, None, 4], name="s"), g.ints(2, 4)])
    g.output(g.node("Add", [rows, total_of_x], ["y"]), None)
    c.save("rows.onnx", onnx.model(g))
    want("s:1=1" in example(c, c.run("run", "rows.onnx", code=2)), "the second dimension of s must be 1")


def made_up_names(c):
    """Names that inspect generates are accepted, and never equal those of another dimension."""
    model = total(c, "m.onnx", [("x", [1, None, None]), ("z", [1, "x_1"])])
    text = c.run("inspect", model).out.decode()
    want("x: f32[1,x_1_,x_2]" in text and "z: f32[1,x_1]" in text, text)
    text = c.run("opt", model, "--stop=none", "-d", "x_1_=2", "-d", "x_2=3", "-d", "x_1=4").out.decode()
    want('"x": f32[1,2,3]' in text and '"z": f32[1,4]' in text, text[:200])


def sums(c):
    """A dimension that is named like a sum of others is that sum."""
    model = total(c, "m.onnx", [("a", ["batch", "past"]), ("b", ["batch", "past + now"]),
                                ("c", ["batch", "now"]), ("d", ["batch", "past+1"])])
    text = c.run("opt", model, "--stop=none", "-d", "past=3", "-d", "now=2").out.decode()
    want('"b": f32[1,5]' in text and '"d": f32[1,4]' in text, text[:300])
    got = c.run("run", model, code=2)
    want("'past'" in got.text() and "'past + now'" not in got.text(), got.text())
    example(c, got)


def no_bound(c):
    """A size that is a quotient of a symbolic extent has no bound: the message names the option."""
    g = onnx.Graph()
    rows = g.node("Cast", [g.node("Shape", [g.input(["n"], name="x")])], to=1)
    size = g.node("Cast", [g.node("Mul", [g.node("Reciprocal", [rows]), g.node("Cast", [g.ints(12)], to=1)])], to=7)
    g.output(g.node("ConstantOfShape", [size], ["y"]), None)
    model = c.save("m.onnx", onnx.model(g))
    c.run("compile", model, "--max-shapes", "x:8", "-o", "m.c", code=3, text="-d 'n=N'")
    want("f32[3]" in c.run("run", model, "-d", "n=4").out.decode(), "12 / 4 is not 3")


def cache(c, name, dims, out):
    """Growing caches, and a mask over their contents."""
    g = onnx.Graph()
    x, mask = g.input(dims["x"], name="x"), g.input(dims["mask"], name="mask")
    for i in range(2):
        both = g.node("Concat", [g.input(dims["past"], name=f"past_key_values.{i}.key"), x], [out.format(i)], axis=2)
        g.output(both, None)
    g.output(g.node("Add", [g.node("ReduceSum", [both], keepdims=0), g.node("ReduceSum", [mask], keepdims=0)], ["y"]), None)
    return c.save(name, onnx.model(g))


def growing(c):
    """A dimension that grows with the state gets a bound, the others a number, and the command keeps the state."""
    named = {"x": ["batch", 2, "seq", 8], "mask": ["batch", "past + seq"], "past": ["batch", 2, "past", 8]}
    plain = {"x": [1, 2, 1, 8], "mask": [1, 1], "past": [1, 2, None, 8]}
    for model, flags in ((cache(c, "named.onnx", named, "present.{}.key"), ["--state", "auto"]),
                         (cache(c, "plain.onnx", plain, "new{}"), [x for i in range(2) for x in ("--state", f"past_key_values.{i}.key=new{i}")])):
        for verb, more in (("run", []), ("run", ["--steps", "3"] if model == "named.onnx" else []), ("compile", ["-o", "x.c"]),
                           ("verify", ["--engine", "interp"]), ("bench", ["--engine", "interp", "--seconds", "0.001"]), ("inspect", [])):
            if model == "plain.onnx" and "--steps" in more:
                continue
            line = example(c, c.run(verb, model, *flags, *more, code=0 if verb == "inspect" else 2))
            want("--max-shapes" in line or verb == "inspect", line)
    example(c, c.run("run", "named.onnx", "--state", "auto", "--max-shapes", "past_key_values.0.key:3x2x50x8", code=2))
    example(c, c.run("compile", "named.onnx", "--state", "auto", "-o", "x.c", "--max-shapes", "past_key_values.0.key:3x2x50x8", code=2))
    example(c, c.run("run", "named.onnx", "--state", "auto", "-d", "seq=2", "--max-shapes", "past_key_values.0.key:3x2x50x8", code=2))
    for engine in ("ref", "interp", "c"):
        few = ("run", "named.onnx", "--state", "auto", "-d", "seq=1,batch=1", "-d", "past + seq=4", "--max-shapes",
               "past_key_values.0.key:1x2x3x8", "-e", engine, "--steps")
        c.run(*few, "4")
        c.run(*few, "6", code=4, text="the state is full")
    example(c, c.run("run", "named.onnx", "--max-shapes", "x:3x2x4x8,past_key_values.0.key:3x2x50x8", code=2))


def choices(c, name, op):
    """A result whose rank depends on a size, and an If whose branches read the size."""
    def branches(x, *ops):
        made = [onnx.Graph(f"{x}.{i}.") for i in range(2)]
        for b, (kind, *more) in zip(made, ops):
            b.output(b.node(kind, [x, *(b.ints(*k) for k in more)]), None)
        return {"then_branch": made[0], "else_branch": made[1]}
    g = onnx.Graph()
    x = g.input(["batch", "n"], name="x")
    is_one = g.node("Equal", [g.node("Gather", [g.node("Shape", [x]), g.const([], [1], onnx.INT64)]), g.const([], [1], onnx.INT64)])
    y = g.node("If", [is_one], ["rank"], **branches(x, ("Squeeze", [1]), ("Identity",)))
    y = g.node("If", [g.node("Cast", [g.input([], name="which")], to=onnx.BOOL)], ["choice"], **branches(y, (op,), ("Neg",)))
    g.output(g.node("Identity", [y], ["y"]), ["batch", "rest"])
    return c.save(name, onnx.model(g))


def inspected(c):
    """inspect shows inputs and outputs of a model that cannot be built with symbolic dimensions, and one message with the
    missing sizes."""
    model = choices(c, "rank.onnx", "Relu")
    got = c.run("inspect", model)
    text = got.out.decode()
    want("  x: f32[batch,n]\n" in text and "  y: f32[batch,rest]\n" in text and text.count("not known") == 1 and "  none" in text, text)
    want("-d n=" in example(c, got), got.text())
    report = json.loads(c.run("inspect", model, "--json").out)
    want(report["inputs"][0]["type"] == "f32[batch,n]" and "'n'" in report["memory"]["why"] and not report["unsupported"], f"{report}")
    odd = choices(c, "odd.onnx", "NoSuchOperator")
    got = run([c.env.ingot, "inspect", odd], 20, cwd=c.dir)
    text = got.out.decode()
    want(got.rc == 3 and "  x: f32[batch,n]\n" in text and text.count("operator NoSuchOperator of") == 1 and "messages" not in text, text)


def chosen(c):
    """The test for -1 that torch writes before every expand keeps dimensions symbolic, whatever else the list contains."""
    g = onnx.Graph()
    x = g.input(["n", 4], name="x")
    rows = g.node("Gather", [g.node("Shape", [x]), g.ints(0)])
    shape = g.node("Concat", [rows, g.ints(-1), g.ints(4)], axis=0)
    target = g.node("Where", [g.node("Equal", [shape, g.ints(-1, -1, -1)]), g.ints(1, 1, 1), shape])
    g.output(g.node("Expand", [g.node("Unsqueeze", [x, g.ints(1)]), target], ["y"]), None)
    text = c.run("opt", c.save("m.onnx", onnx.model(g)), "--stop=none", "--max-shapes", "x:8x4").out.decode()
    want('f32[n,1,4]' in text and "nonzero" not in text, text)
    want("f32[3,1,4]" in c.run("run", "m.onnx", "-d", "n=3").out.decode(), "the shape of the result")


def less(c):
    """Sizes as torch.export writes them, (n + -1) / 4 + 1, stay known while n is symbolic."""
    g = onnx.Graph()
    x = g.input(["n", 3], name="x")
    n = g.node("Squeeze", [g.node("Shape", [x], start=0, end=1)])
    rows = g.node("Add", [g.node("Div", [g.node("Add", [g.const([], [-1], onnx.INT64), n]), g.const([], [4], onnx.INT64)]), g.const([], [1], onnx.INT64)])
    size = g.node("Concat", [g.node("Unsqueeze", [rows, g.ints(0)]), g.ints(1, 3)], axis=0)
    every = g.node("Slice", [x, g.ints(0), g.ints(2 ** 31), g.ints(0), g.ints(4)])
    g.output(g.node("Reshape", [every, size], ["y"]), None)
    model = c.save("less.onnx", onnx.model(g))
    want("y: f32[(n+3)/4,1,3]" in c.run("inspect", model).out.decode(), "the shape of y is not known")
    for rows in (1, 4, 5, 9):
        npy.save(c.path("x.npy"), npy.Array("f32", (rows, 3), [float(i) for i in range(3 * rows)]))
        for engine in ("ref", "interp", "c"):
            out = c.run("run", model, "--max-shapes", "x:9x3", "--input", "x=@x.npy", "-e", engine).out.decode()
            want(f"y: f32[{(rows + 3) // 4},1,3]" in out, f"{rows} rows, {engine}: {out}")


def no_fit(c):
    """If no usual size fits, the message gives the reason for one."""
    g = onnx.Graph()
    g.output(g.node("Reshape", [g.input([1, "n"], name="x"), g.ints(7, 11)], ["y"]), None)
    got = c.run("run", c.save("seven.onnx", onnx.model(g)), code=2, text="with -d n=128: node 0")
    want("for example" not in got.text(), got.text())


CASES = (one_table, all_missing, made_to_fit, made_up_names, sums, no_bound, growing, inspected, chosen, less, no_fit)


def tests(env):
    return [Test(f"cli/dims/{fn.__name__}", lambda fn=fn: fn(Cli(env, "dims_" + fn.__name__)), cost=1) for fn in CASES]
