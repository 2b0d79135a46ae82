"""Misspelled words and arrays of the wrong kind: the message lists what exists and the most similar name."""
import os
from lib import npy
from lib import onnxfile as onnx
from lib.core import Test, want
from suite.cli import MODEL, Cli

CHECK = "*"


def words(c):
    for args, text in ((["comple", MODEL], "did you mean 'compile'?"), (["inpsect", MODEL], "did you mean 'inspect'?"),
                       (["run", MODEL, "--sede", "1"], "did you mean --seed?"), (["run", MODEL, "--engin=c"], "did you mean --engine?"),
                       (["compile", MODEL, "--optimise-for", "size"], "did you mean --optimize-for?"),
                       (["run", MODEL, "--weights", "file"], "no such option; it is an option of: compile, build"),
                       (["run", MODEL, "--engine", "inter"], "did you mean 'interp'?"), (["compile", MODEL, "--march", "axv2"], "did you mean 'avx2'?"),
                       (["build", MODEL, "--march", "avx3", "-o", "x.o"], "did you mean 'avx2'?"),
                       (["compile", MODEL, "--weights", "litteral"], "did you mean 'literal'?"),
                       (["run", MODEL, "-d", "bach=1"], "did you mean 'batch'?"), (["run", MODEL, "-d", "imagee:0=1"], "did you mean 'image'?"),
                       (["run", MODEL, "--input", "Image=rand"], "inputs are image: f32[batch,1,8,8]; did you mean 'image'?"),
                       (["run", MODEL, "--freeze", "imgae=1"], "did you mean 'image'?"),
                       (["help", "comple"], "did you mean 'compile'?"), (["run", MODEL, "--grad", "probabilty"], "did you mean 'probability'?"),
                       (["run", MODEL, "-d", "batch=1", "--train", "loss=cross_entrpy,optimizer=sgd"], "did you mean 'cross_entropy'?"),
                       (["run", MODEL, "-d", "batch=1", "--train", "loss=mse,optimizer=adm"], "did you mean 'adam'?"),
                       (["run", MODEL, "-d", "batch=1", "--train", "loss=mse,optimiser=adam"], "did you mean 'optimizer'?"),
                       (["export", MODEL, "--project", "cmak", "-o", "x"], "did you mean 'cmake'?"),
                       (["build", MODEL, "--preset", "blanced", "-o", "x"], "did you mean 'balanced'?"),
                       (["quantize", MODEL, "--method", "weigths8", "-o", "x.onnx"], "did you mean 'weights8'?")):
        c.run(*args, code=2, text=text)
    want(c.run("help", "run").out == c.run("run", "--help").out, "help of a verb")
    c.run("compile", MODEL, "-d", "batch=1", "--state", "imge=probability", code=2, text="inputs are image; outputs are probability")
    want(b"[2,10]" in c.run("run", MODEL, "--shapes", "image=2x1x8x8").out, "a shape behind '='")
    for args in (["frobnicate"], ["run", MODEL, "--nonsense"], ["run", MODEL, "--engine", "steam"], ["run", MODEL, "--input", "other=1"]):
        want("did you mean" not in c.run(*args, code=2).text(), f"{args}: a guess out of the blue")


def concepts(c):
    """Options of other tools: the message names the option of ingot."""
    for args, text in ((["run", MODEL, "--batch", "4"], "did you mean -d batch=4?"), (["compile", MODEL, "--batch-size=8"], "did you mean -d batch=8?"),
                       (["run", MODEL, "--device", "cuda"], "use --engine cuda"), (["bench", MODEL, "--gpu"], "use --engine cuda"), (["play", MODEL, "-ngl", "99"], "use --engine cuda"),
                       (["build", MODEL, "--provider", "cuda"], "use --target cuda"), (["serve", MODEL, "-ngl", "99"], "'ingot run --engine cuda'"), (["play", MODEL, "-fa"], "attention is always fused"),
                       (["compile", MODEL, "-O3"], "passes -O N to the C compiler"), (["compile", MODEL, "--dynamic"], "--method dynamic"), (["compile", MODEL, "--quantize"], "ingot quantize MODEL -o OUT"),
                       (["compile", MODEL, "--fp16"], "ingot quantize MODEL --method f16"), (["run", MODEL, "--half"], "ingot quantize MODEL --method f16"),
                       (["compile", MODEL, "--opset", "17"], "'ingot ops' lists"), (["run", MODEL, "--verbos"], "did you mean --verbose?"),
                       (["bench", MODEL, "--iterations", "9"], "--seconds"),
                       (["compile", MODEL, "--opt"], "did you mean --optimize-for?"), (["build", MODEL, "--thr", "2"], "did you mean --threads, --threads-api, --threads-grain?"),
                       (["run", MODEL, "--seed"], "needs a value: --seed N"), (["run", MODEL, "--json=1"], "takes no value: --json"),
                       (["convert", MODEL], "did you mean 'compile'?"), (["infer"], "did you mean 'run'?"), (["chat"], "did you mean 'play'?"), (["server"], "did you mean 'serve'?"),
                       (["generate"], "did you mean 'play'?"), (["comp"], "did you mean 'compile', 'completions'?"), (["run"], "MODEL: missing; usage: ingot run MODEL")):
        c.run(*args, code=2, text=text)


def aliases(c):
    """Spellings of other tools and of earlier versions are accepted; the help does not list them."""
    once = c.run("run", MODEL, "--seed", "7", "--shapes", "image:2x1x8x8").out
    for args in (["-s", "7", "--input-shapes", "image:2x1x8x8"], ["-s7", "--overwrite_input_shape=image:2x1x8x8"], ["--seed=7", "--input-shape", "image:2x1x8x8", "-t", "1"]):
        want(c.run("run", MODEL, *args).out == once, f"{args}")
    c.run("bench", "-m", MODEL, "--engine", "vm", "--duration", "0.01", "-x", "1")
    c.run("bench", "--model", MODEL, MODEL, code=2, text="unexpected argument after ")
    c.run("play", MODEL, "-cnv", "-p", "x", code=2, text="leave out --prompt")
    c.run("play", MODEL, "-st", code=2, text="--prompt TEXT")
    c.run("play", MODEL, "--temp", "many", code=2, text="--temperature many: expected a number")
    c.run("play", "-m", MODEL, "-n", "x", code=2, text="--max-tokens x: expected")
    c.run("perplexity", "-m", MODEL, "-c", "x", code=2, text="--context x: expected")
    for verb, old, new, value in (("build", "--via", "--backend", ["llvm"]), ("export", "--for", "--project", ["cmake"]), ("quantize", "--per", "--granularity", ["tensor"]),
                                  ("quantize", "--to", "--type", ["F16"]), ("opt", "--side", "--weights-file", []), ("build", "--relaxed", "--fast-math", []),
                                  ("quantize", "--keep", "--exclude", ["x"]), ("train", "--shares", "--accumulate", ["2"])):
        args = [verb, old, *value, "--help"]
        want(c.run(*args).text().strip() == f"ingot {verb}: {old} is now called {new}", f"{args}: {c.run(*args).text()}")
        want(not c.run(*args, "--quiet").text() and not c.run(verb, new, *value, "--help").text(), f"{new}: a note")
        text = c.run(verb, "--help-all").out.decode().split()
        want(new in text and old not in text, f"{verb} --help-all: {old} or no {new}")


def texts(c):
    """The same for a graph as text, and for a model without inputs."""
    c.save("t.ing", b'graph (%x "first": f32[2,2], %s "second": i64[]) {\n  %c: f32[] = cast(%s) {to=f32}\n  %y: f32[2,2] = add(%x, %c)\n  return %y "y"\n}\n')
    c.run("run", "t.ing", "--input", "frist=1", code=2, text="inputs are first: f32[2,2], second: i64[]; did you mean 'first'?")
    g = onnx.Graph()
    g.output(g.node("Identity", [g.weight(2)], ["y"]), None)
    c.run("run", c.save("none.onnx", onnx.model(g)), "--input", "x=1", code=2, text="no input 'x'; it has none")


def arrays(c):
    npy.save(c.path("i.npy"), npy.Array("i64", (1, 1, 8, 8), [0] * 64))
    c.run("run", MODEL, "--input", "image=@i.npy", code=4,
          text="input 'image' is f32[1,1,8,8], the array given is i64[1,1,8,8]; in numpy: x.astype(\"float32\")")
    npy.save(c.path("flat.npy"), npy.Array("f32", (8, 8), [0.0] * 64))
    c.run("run", MODEL, "--input", "image=@flat.npy", code=4, text="input 'image' is f32[batch,1,8,8], the array given is f32[8,8]")
    npy.save(c.path("rgb.npy"), npy.Array("f32", (2, 3, 8, 8), [0.0] * 384))
    c.run("run", MODEL, "--input", "image=@rgb.npy", code=4,
          text="input 'image' is f32[batch,1,8,8], the array given is f32[2,3,8,8]: dimension 1 is 3, expected 1")
    c.save("t.ing", b'graph (%x "x": f32[2,2]) {\n  return %x "y"\n}\n')
    c.run("run", "t.ing", "--input", "x=@flat.npy", code=4, text="input 'x' is f32[2,2], the array given is f32[8,8]")
    os.unlink(c.path("t.ing"))


def nodes(c):
    """An error in a node has the names and shapes of the file."""
    for op, shapes, attrs, text in (("MatMul", ([2, 3], [4, 5]), {}, "node 0 'n_z' (MatMul): extents 3 and 4 of axis k differ"),
                                    ("Conv", ([1, 3, 8, 8], [4, 2, 3, 3]), {}, "x has 3 channels, w expects 2"),
                                    ("Softmax", ([1, 3],), {"axis": 5}, "axis 5 out of range for rank 2")):
        g = onnx.Graph()
        names = [g.input(s, name=f"in{i}") for i, s in enumerate(shapes)]
        g.output(g.node(op, names, ["z"], **attrs), None)
        said = c.run("compile", c.save("n.onnx", onnx.model(g)), code=4, text=text).text()
        inputs = ", ".join(f"in{i}: f32[{','.join(map(str, s))}]" for i, s in enumerate(shapes))
        want(said.endswith("; inputs are " + inputs) and "contract" not in said, f"{op}: {said}")


CASES = (words, concepts, aliases, texts, arrays, nodes)


def tests(env):
    return [Test(f"cli/near/{fn.__name__}", lambda fn=fn: fn(Cli(env, "near_" + fn.__name__)), cost=1) for fn in CASES]
