"""What people type the first time: values that contradict each other, names of files without '@', sizes with other units, a model
on standard input. Each is taken, or refused with a message that says what to type."""
from lib import npy
from lib import onnxfile as onnx
from lib.core import Test
from suite.cli import MODEL, Cli, want


def sum_of_two(c, name, dims):
    g = onnx.Graph()
    g.output(g.node("Add", [g.input(dims, name="x"), g.input(dims, name="z")], ["y"]), None)
    return c.save(name, onnx.model(g))


def contradictions(c):
    """One input has one value, one dimension one extent, under whatever name it is given."""
    model = sum_of_two(c, "two.onnx", ["b", "n"])
    n = ["-d", "n=2"]
    for flags, text in ((["--freeze", "x=1", "--freeze", "x=2"], "input 'x' is frozen twice"),
                        (["--freeze", "x=1", "--input", "x=2"], "input 'x' is frozen at other contents"),
                        (["--freeze", "x=[[1,2]]", "--input", "x=1"], "input 'x' is frozen at other contents"),
                        (["--freeze", "x=1", "--input", "x=rand"], "input 'x' is frozen and cannot be random"),
                        (["--input", "x=1", "--input", "x=2"], "input 'x' is given twice"),
                        (["-d", "b=1", "-d", "b=2"], "'b=2': the extent of this dimension has been given as 1"),
                        (["-d", "b=1", "-d", "x:0=2"], "dimension 'b' is given as 1 and as 2"),
                        (["--shapes", "x:1x2", "--shapes", "x:2x2"], "has been given as 1"),
                        (["--shapes", "x:1x2", "--shapes", "z:2x2"], "dimension 'b' is given as 1 and as 2"),
                        (["--max-shapes", "x:4x2,z:5x2"], "dimension 'b' is given as 4 and as 5"),
                        (["--max-shapes", "x:4x2", "-d", "b=5"], "dimension 'b' is given as 5, its bound is 4"),
                        (["--max-shapes", "x:4x2", "-d", "x:0=5"], "'x:4x2': the extent of this dimension has been given as 5")):
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
    """--max-shapes for one input bounds every dimension of that name, and no array goes beyond."""
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
    """Units of --ram, several dimensions with commas."""
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
    """What is the name of a file, where no file is read; a folder that is none."""
    model = sum_of_two(c, "two.onnx", [2, 3])
    npy.save(c.path("a.npy"), npy.Array("f32", (2, 3), [1.0] * 6))
    c.save("data.raw", b"")
    for spec, text in (("x=a.npy", "a file is given with '@': 'x=@a.npy'"), ("x=none.pb", "'x=@none.pb'"), ("x=data.raw", "'x=@data.raw'"),
                       ("x=all.npz", "given with --inputs 'all.npz'"), ("x=cat.png", "images are not read"), ("x=1.5x", "is not a number")):
        c.run("run", model, "--input", spec, code=2, text=text)
    c.save("all.npz", b"")
    c.run("run", model, "--input", "x=@all.npz", code=2, text="give it with --inputs")
    c.save("1", b"")
    c.run("run", model, "--input", "x=1")
    for args in (["compile", model, "-o", "a.npy/x.c"], ["build", model, "-o", "a.npy/x"], ["run", model, "-o", "a.npy/x.npz"]):
        c.run(*args, code=5, text="'a.npy' is not a directory")


def arrays(c):
    """Arrays that do not fit: both shapes, the cast, the names there are."""
    model = sum_of_two(c, "two.onnx", [2, 3])
    one = [1.0] * 6
    npy.save(c.path("flat.npy"), npy.Array("f32", (6,), one))
    npy.save(c.path("wide.npy"), npy.Array("f64", (2, 3), one))
    npy.save_npz(c.path("names.npz"), {"x": npy.Array("f32", (2, 3), one), "q": npy.Array("f32", (2, 3), one)})
    for verb in ("run", "verify"):
        c.run(verb, model, "--input", "x=@flat.npy", code=4, text="input 'x' is f32[2,3], the array given is f32[6]")
        c.run(verb, model, "--input", "x=@wide.npy", code=4, text='the array given is f64[2,3]; in numpy: x.astype("float32")')
        c.run(verb, model, "--inputs", "names.npz", code=2, text="the model has no input 'q'; inputs are x: f32[2,3], z: f32[2,3]")


CASES = (contradictions, bounds, letters, spellings, files, arrays)


def tests(env):
    return [Test(f"cli/first/{fn.__name__}", lambda fn=fn: fn(Cli(env, "first_" + fn.__name__)), cost=1) for fn in CASES]
