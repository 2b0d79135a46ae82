"""First attempts of users: contradictory values, file names without '@', sizes with units, a model on standard input.

Each is accepted, or refused with a message that says what to type.
"""
import shutil
from lib import cpu, npy
from lib import onnxfile as onnx
from lib.core import Skip, Test, run
from suite.cli import MODEL, Cli, want


def sum_of_two(c, name, dims):
    g = onnx.Graph()
    g.output(g.node("Add", [g.input(dims, name="x"), g.input(dims, name="z")], ["y"]), None)
    return c.save(name, onnx.model(g))


def contradictions(c):
    """An input has one value and a dimension one extent, under any of its names."""
    model = sum_of_two(c, "two.onnx", ["b", "n"])
    n = ["-d", "n=2"]
    for flags, text in ((["--freeze", "x=1", "--freeze", "x=2"], "input 'x' is frozen twice"),
                        (["--freeze", "x=1", "--input", "x=2"], "input 'x' is frozen; found other contents"),
                        (["--freeze", "x=[[1,2]]", "--input", "x=1"], "input 'x' is frozen; found other contents"),
                        (["--freeze", "x=1", "--input", "x=rand"], "input 'x' is frozen and cannot be random"),
                        (["--input", "x=1", "--input", "x=2"], "input 'x' is given twice"),
                        (["-d", "b=1", "-d", "b=2"], "'b=2': the extent of this dimension was given before as 1"),
                        (["-d", "b=1", "-d", "x:0=2"], "dimension 'b' was given as 1 and as 2"),
                        (["--shapes", "x:1x2", "--shapes", "x:2x2"], "was given before as 1"),
                        (["--shapes", "x:1x2", "--shapes", "z:2x2"], "dimension 'b' was given as 1 and as 2"),
                        (["--max-shapes", "x:4x2,z:5x2"], "dimension 'b' was given as 4 and as 5"),
                        (["--max-shapes", "x:4x2", "-d", "b=5"], "dimension 'b' was given as 5, expected at most its bound 4"),
                        (["--max-shapes", "x:4x2", "-d", "x:0=5"], "'x:4x2': the extent of this dimension was given before as 5")):
        c.run("run", model, *n, *flags, code=2, text=text)
        if "rand" not in flags[-1]:
            c.run("compile", model, *n, *flags, code=2, text=text)
    with open(c.path("t.ing"), "w") as f:
        f.write('graph (%x "x": f32[2]) {\n  return %x "y"\n}\n')
    for flags in (["--input", "x=2"], ["--input", "x=rand"], ["--freeze", "x=2"]):
        c.run("run", "t.ing", "--freeze", "x=1", *flags, code=2, text="input 'x' is frozen")
    for flags in (["--freeze", "x=1", "--input", "x=1"], ["--freeze", "x=[[1,1]]", "--input", "x=1"], ["-d", "b=1", "-d", "x:0=1"],
                  ["--max-shapes", "x:4x2", "-d", "b=4"]):
        c.run("run", model, "-d", "n=2", *(flags if "b=" in " ".join(flags) else ["-d", "b=1", *flags]))


def bounds(c):
    """--max-shapes for one input bounds every dimension of that name, and larger arrays are refused."""
    model = sum_of_two(c, "two.onnx", ["b", "n"])
    for rows in (2, 4, 5):
        npy.save(c.path(f"{rows}.npy"), npy.Array("f32", (rows, 3), [1.0] * (3 * rows)))
    for engine, text in (("ref", "expected b in 0..4, found 5"), ("interp", "input 'x': dimension 0 is 5, expected b with b from 0 to 4"), ("c", "0 to 4")):
        both = [x for name in ("x", "z") for x in ("--input", f"{name}=@5.npy")]
        c.run("run", model, "--max-shapes", "x:4x4", *both, "-e", engine, code=4, text=text)
        c.run("run", model, "--max-shapes", "x:4x4", "--input", "x=@2.npy", "--input", "z=@4.npy", "-e", engine, code=4)
    text = c.run("opt", model, "--max-shapes", "x:4x4", "--input", "z=@2.npy", "--stop=none").out.decode()
    want('"x": f32[b,n], ' in text and '"z": f32[b,n])' in text, text)
    c.run("run", model, "--max-shapes", "x:4x4", "--input", "x=@2.npy", "--input", "z=@4.npy", code=4,
          text="input 'z': dimension 0 is 4, expected b = 2")


def letters(c):
    """Strings are UTF-8, with and without quotes."""
    g = onnx.Graph()
    g.output(g.node("Identity", [g.input(["n"], onnx.STRING, "s")], ["y"]), None, onnx.STRING)
    model = c.save("s.onnx", onnx.model(g))
    for spec, shown in (('s=["é","ü€"]', '"é" "ü€"'), ("s=[é,ü]", '"é" "ü"'), ('s=["\\xc3\\xa9"]', '"é"')):
        out = c.run("run", model, "--input", spec).out.decode()
        want(shown in out, f"{spec}: {out}")
    c.run("run", model, "--input", 's=["a]', code=2, text="has no closing quote")
    c.run("run", model, "--input", 's=["\\q"]', code=2, text="an escape other than")


def spellings(c):
    """Units of --ram, several dimensions separated by commas."""
    for size in ("64K", "64k", "64KB", "64kB", "64KiB", "65536"):
        c.run("compile", MODEL, "-d", "batch=1", "--ram", size, "-o", "x.c")
    for size in ("64Kb", "64X", "64 K", "0.5M", "64KBB", "64B"):
        c.run("compile", MODEL, "-d", "batch=1", "--ram", size, "-o", "x.c", code=2, text="as 262144, 256K or 2M")
    model = sum_of_two(c, "two.onnx", ["b", "n"])
    for spec in ("b=3,n=12", "x:0=3,x:1=12", "b:3,n=12"):
        want(b"y: f32[3,12]" in c.run("run", model, "-d", spec).out, spec)
    c.run("run", model, "-d", "b=3,n", code=2, text="'n': expected NAME=N")
    odd = sum_of_two(c, "odd.onnx", ["a,b", "n,=2"])
    want(b"y: f32[3,2]" in c.run("run", odd, "-d", "a,b=3", "-d", "n,=2=2").out, "names with commas")


def files(c):
    """A file name where no file is read; a path that is not a folder."""
    model = sum_of_two(c, "two.onnx", [2, 3])
    npy.save(c.path("a.npy"), npy.Array("f32", (2, 3), [1.0] * 6))
    c.save("data.raw", b"")
    for spec, text in (("x=a.npy", "use '@' for a file: 'x=@a.npy'"), ("x=none.pb", "'x=@none.pb'"), ("x=data.raw", "'x=@data.raw'"),
                       ("x=all.npz", "use --inputs 'all.npz'"), ("x=cat.png", "images are not read"), ("x=1.5x", "is not a number")):
        c.run("run", model, "--input", spec, code=2, text=text)
    c.save("all.npz", b"")
    c.run("run", model, "--input", "x=@all.npz", code=2, text="use --inputs")
    c.save("1", b"")
    c.run("run", model, "--input", "x=1")
    for args in (["compile", model, "-o", "a.npy/x.c"], ["build", model, "-o", "a.npy/x"], ["run", model, "-o", "a.npy/x.npz"]):
        c.run(*args, code=5, text="'a.npy' is not a directory")


def arrays(c):
    """Arrays of a wrong shape or type: the message has both shapes, the cast, the existing names."""
    model = sum_of_two(c, "two.onnx", [2, 3])
    one = [1.0] * 6
    npy.save(c.path("flat.npy"), npy.Array("f32", (6,), one))
    npy.save(c.path("wide.npy"), npy.Array("f64", (2, 3), one))
    npy.save_npz(c.path("names.npz"), {"x": npy.Array("f32", (2, 3), one), "q": npy.Array("f32", (2, 3), one)})
    npy.save_npz(c.path("part.npz"), {"x": npy.Array("f32", (2, 3), one), "z.0": npy.Array("f32", (2, 3), one)})
    c.run("run", model, "--inputs", "part.npz", code=2, text="the model has no input 'z.0'")
    for verb in ("run", "verify"):
        c.run(verb, model, "--input", "x=@flat.npy", code=4, text="input 'x' is f32[2,3], the array given is f32[6]")
        c.run(verb, model, "--input", "x=@wide.npy", code=4, text='the array given is f64[2,3]; in numpy: x.astype("float32")')
        c.run(verb, model, "--inputs", "names.npz", code=2, text="the model has no input 'q'; inputs are x: f32[2,3], z: f32[2,3]")
        c.run(verb, model, "--inputs", "names.npz", "-i", "z=1", text="warning: names.npz: array 'q' is not an input of the model: ignored")
    for how in (["run", model, "--inputs"], ["verify", model, "--data"], ["bench", model, "--inputs"], ["quantize", model, "-o", "q.onnx", "--data"], ["train", model, "-o", "q.onnx", "--data"],
                ["build", model, "-o", "p", "--pgo=flat.npy"]):
        c.run(*how, *([] if how[-1].endswith("flat.npy") else ["flat.npy"]), code=2, text="flat.npy: expected an .npz archive, as numpy.savez writes it")


def standard_input(c):
    """bench and verify read and open the model once for all engines."""
    with open(c.path(sum_of_two(c, "two.onnx", [2, 3])), "rb") as f:
        data = f.read()
    for verb in (["run"], ["bench", "--seconds", "0.001"], ["verify"], ["verify", "--per-node"], ["inspect"]):
        got = run([c.env.ingot, verb[0], "-", *verb[1:]], 60, cwd=c.dir, stdin=data)
        want(got.rc == 0 and b"empty" not in got.err, f"{verb}: {got.err}")
    got = run([c.env.ingot, "verify", "-"], 60, cwd=c.dir, stdin=b"")
    want(got.rc == 4 and got.err.count(b"is empty") == 1, f"an empty model: {got.err}")


def tables(c):
    """Names are complete, and no number overflows its type."""
    name = "encoder/layer.11/attention/output/dense/Add_1_output_0/\u00e9"
    g = onnx.Graph()
    g.output(g.node("Add", [g.input([4], onnx.DOUBLE, "x")] * 2, [name]), None, onnx.DOUBLE)
    model = c.save("long.onnx", onnx.model(g))
    npy.save(c.path("x.npy"), npy.Array("f64", (4,), [8e307, -4e307, 1e-300, 2e307]))
    rows = c.run("verify", model, "-e", "interp", "--input", "x=@x.npy").out.decode().splitlines()
    want(len(rows) == 2 and name in rows[1] and " 1.000000000 " in rows[1], f"{rows}")
    want(rows[0].index("cosine") + len("cosine") == rows[1].index(" 1.000000000 ") + 12, f"the columns are askew: {rows}")
    want(name in c.run("verify", model, "--per-node", "-e", "interp", "--input", "x=1").out.decode(), "cut off in --per-node")
    npy.save(c.path("x.npy"), npy.Array("f64", (4,), [1e-320, 0, 0, 0]))
    want(b" 1.000000000 " in c.run("verify", model, "-e", "interp", "--input", "x=@x.npy").out, "small numbers")


MAIN = """#include "one.h"
_Alignas(ONE_ARENA_ALIGN) static unsigned char arena[ONE_ARENA_BYTES], test[ONE_SELFTEST_BYTES];
int main(void) {
  float x[ONE_INPUT0_ELEMENTS] = {0}, y[ONE_OUTPUT0_ELEMENTS];
  return one_selftest(test) || one_run(arena, x, y);
}
"""


def in_c(c):
    """The pattern of the README for a model without an arena; a missing part."""
    if not shutil.which("cc"):
        raise Skip("no C compiler")
    g = onnx.Graph()
    g.output(g.node("Relu", [g.input([2, 3], name="x")], ["y"]), None)
    c.run("compile", c.save("one.onnx", onnx.model(g)), "-o", "one.c")
    c.save("main.c", MAIN.encode())
    strict = ["cc", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    for args in ([*strict, "main.c", "one.c", "-o", "main"], ["./main"]):
        got = run(args, 60, cwd=c.dir)
        want(got.rc == 0, f"{args}: {got.err}")
    c.run("compile", "one.onnx", "--split", "4", "-o", "one.c")
    for part, fine in ((0, True), (3, True), (4, False), (9, False), (-1, False)):
        got = run([*strict, f"-DONE_PART={part}", "-c", "one.c", "-o", "part.o"], 60, cwd=c.dir)
        want((got.rc == 0) == fine and (fine or b"must be a number from 0 to" in got.err), f"part {part}: {got.rc} {got.err}")


def machines(c):
    """Code for another machine, compiler or model: the message names both, and what to use instead."""
    if not shutil.which("cc"):
        raise Skip("no C compiler")
    here, other, cross = ("sse2", "neon", "aarch64-linux-gnu-gcc") if cpu.can_run("sse2") else ("neon", "sse2", "x86_64-linux-gnu-gcc")
    for args in (["build", MODEL, "-o", "x.o"], ["bench", MODEL, "--seconds", "0.001"]):
        got = c.run(*args, "--march", other, "--cc", "cc", code=2, text=f"the C compiler 'cc' cannot compile for {other}")
        want(cross in got.text(), got.text())
    c.run("build", MODEL, "-d", "batch=1", "-o", "x.o", "--march", other, "--cc", "cc -DINGOT_PORTABLE")
    model = sum_of_two(c, "two.onnx", [2, 3])
    c.run("build", model, "--caller", "--march", here, "-f", "model", "-o", "two.so")
    c.run("run", model, "-e", "c", "--library", "two.so", code=4, text=f"was built for {here}, the model here is for scalar; use --march {here}")
    c.run("run", model, "-e", "c", "--library", "two.so", "--march", here)


def idle(c):
    """--threads on an engine with one thread: one warning, and the result."""
    for args in (["run"], ["run", "--engine", "interp"], ["bench", "--engine", "vm", "--seconds", "0.01"]):
        got = c.run(*args, MODEL, "-d", "batch=1", "--threads", "2", text="ignores it; --engine c uses it")
        want(got.out and got.text().count("--threads") == 1, f"{args}: {got.text()}")
        want("--threads" not in c.run(*args, MODEL, "-d", "batch=1", "--threads", "2", "--quiet").text(), f"{args}: --quiet")
    want("--threads" not in c.run("run", MODEL, "-d", "batch=1", "--threads", "2", "--engine", "c").text(), "engine c")


def places(c):
    """Words that no option accepts: the message names the right option. ONNX Runtime runs in the Python given by the user."""
    for word, text in (("batch=2", "use -d for dimensions"), ("in.npz", "--inputs"), ("x.npy", "--input NAME=@FILE.npy"), ("more", "unexpected argument after ")):
        c.run("run", MODEL, word, code=2, text=text)
    c.run("ops", "a=b", code=2, text="unexpected argument: 'ops' takes none")
    c.run("run", MODEL, "--python", "python3", code=2, text="needs --engine onnxruntime")
    c.run("run", MODEL, "-e", "onnxruntime", "--python", "no-such-python", code=5, text="cannot be started")
    if c.env.python:
        want(b"probability: f32[1,10]" in c.run("run", MODEL, "-e", "onnxruntime", "--python", c.env.python).out, "no result")


CASES = (contradictions, bounds, letters, spellings, files, arrays, standard_input, tables, in_c, machines, idle, places)


def tests(env):
    return [Test(f"cli/first/{fn.__name__}", lambda fn=fn: fn(Cli(env, "first_" + fn.__name__)), cost=1) for fn in CASES]
