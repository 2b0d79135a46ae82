"""`ingot verify` between engines, --per-node and --bisect, and `ingot bench`, on the built-in model. A C compiler that changes
its input makes engine c wrong."""
import json
import os
import re
import shutil
from lib import npy
from lib.core import ROOT, Fail, Skip, Test, explain, run, tail, want

MODEL = os.path.join(ROOT, "models", "digits.onnx")
# Changes the file, then compiles it: a maximum of two floats becomes their minimum.
SPOILER = """#!/bin/sh
for word; do case $word in *.c) sed -i '/float ig_maxf/,/}/s/b > a/b < a/' "$word"; esac; done
exec cc "$@"
"""

# Changes the file with sed and $SPOIL, then compiles it.
SED = """#!/bin/sh
for word; do case $word in *.c) sed -i "$SPOIL" "$word"; esac; done
exec cc "$@"
"""
# A model with QuantizeLinear enlarges a small difference.
STEPS = """graph (%1 "x": f32[8]) {
  %2: f32[] = const {3}
  %3 "scaled": f32[8] = mul(%1, %2) @("Mul", "scale", 0)
  %4: f32[8] = round(%3) @("QuantizeLinear", "q", 1)
  %5 "q": i8[8] = cast(%4) {to=i8, sat=1} @("QuantizeLinear", "q", 1)
  return %5 "q", %3 "scaled"
}
"""
# The added constant shows in small numbers, but not in huge ones.
SHIFT = """graph (%1 "x": f32[8]) {
  %2: f32[] = const {3}
  %3: f32[8] = add(%1, %2)
  return %3 "y"
}
"""


class Work:
    def __init__(self, env, name):
        env.need_ingot()
        if not shutil.which("cc"):
            raise Skip("no C compiler")
        self.env = env
        self.dir = env.scratch("tools", name)
        shutil.rmtree(self.dir)
        os.makedirs(self.dir)

    def path(self, name):
        return os.path.join(self.dir, name)

    def run(self, verb, *args, code=0, env=None):
        got = run([self.env.ingot, verb, *args], 120, cwd=self.dir, env=env)
        if got.rc != code:
            raise Fail(f"ingot {verb} {' '.join(args)}: {explain(got)}, expected {code}: {tail((got.out + got.err).decode(), 6)}")
        return got.out.decode()

    def spoiler(self):
        with open(self.path("badcc"), "w") as f:
            f.write(SPOILER)
        os.chmod(self.path("badcc"), 0o755)
        return {"CC": self.path("badcc")}


def engines(w):
    rows = json.loads(w.run("verify", MODEL, "-d", "batch=2", "--json"))
    pairs = {(r["engine"], r["against"]) for r in rows["rows"]}
    want({("vm", "ref"), ("c", "ref"), ("c", "vm")} <= pairs and rows["ok"], f"rows: {rows}")
    exact = [r["output"] for r in rows["rows"] if (r["engine"], r["against"]) == ("c", "vm")]
    want(exact and all(o["max_ulp"] == 0 for o in exact), f"C and bytecode differ: {exact}")
    want("cosine" in w.run("verify", MODEL, "--engine", "interp"), "the table has no cosine")
    rows = json.loads(w.run("verify", MODEL, "-d", "batch=2", "--json", code=1, env=w.spoiler()))
    want(not rows["ok"], "a spoiled engine is not noticed")
    w.run("verify", MODEL, code=5, env={"CC": "no-such-compiler"})


def runtime(w):
    python = w.env.need_python()
    rows = json.loads(w.run("verify", MODEL, "--python", python, "--json"))
    want(any(r["engine"] == "onnxruntime" for r in rows["rows"]), "ONNX Runtime did not take part")
    for other, text in (("no-such-python", "cannot be started"), ("/bin/true", "does not run Python code")):
        got = w.run("verify", MODEL, "--python", other, code=5)
        want(not got, f"found out after work: {got}")
    for flags in (["-e", "c"], ["--data", "."]):
        w.run("verify", MODEL, "--python", python, *flags, code=2)
    for how in (["--per-node"], ["--bisect"], ["--html", "x.html"]):
        for flags in (["--python", python], ["--engine", "onnxruntime"], ["--engine", "onnxruntime", "--python", python]):
            got = run([w.env.ingot, "verify", MODEL, *how, *flags], 60, cwd=w.dir)
            want(got.rc == 2 and "ONNX Runtime runs whole files: expected another engine" in got.text(), f"{how} {flags}: {got.text()}")


def per_node(w):
    values = json.loads(w.run("verify", MODEL, "--per-node", "--json"))
    want(values["ok"] and len(values["values"]) > 8, f"{len(values['values'])} values")
    kept = {v["value"].split("#")[0]: v["output"] is not None for v in values["values"] if v["value"][0] != "#"}
    want(kept == {"conv1": False, "bn1": False, "relu1": True, "conv2": False, "bn2": False, "relu2": True, "pool": True, "flat": True,
                  "fc": True, "probability": True}, f"stored values are {kept}")
    want(w.run("verify", MODEL, "--per-node").count(" fused\n") > 5, "the table does not say what was fused")
    values = json.loads(w.run("verify", MODEL, "--per-node", "--json", code=1, env=w.spoiler()))
    first = next(v for v in values["values"] if v["output"] and not v["output"]["ok"])
    want("relu1" in first["node"], f"the first difference is at {first['node']}, expected relu1")


def figures(w):
    """inspect reports the program that compile writes with the same options: its figures are those of the header."""
    w.run("quantize", MODEL, "--data", os.path.join(ROOT, "models", "digits.npz"), "-o", "bytes.onnx")
    for model in (MODEL, "bytes.onnx", os.path.join(ROOT, "test", "docs", "tour.onnx")):
        for flags in ([], ["--march", "avx2"], ["--march", "sse2", "--threads", "2"], ["--optimize-for", "ram"], ["--optimize-for", "size"], ["--ram", "64K"], ["--precise"], ["--max-shapes", "batch=4"]):
            w.run("compile", model, "-o", "net.c", *flags)
            with open(w.path("net.h")) as f:
                macros = dict(reversed(re.findall(r"#define NET_(\w+_BYTES) (\d+)", f.read())))  # the first of two figures, that of optimized code
            told = json.loads(w.run("inspect", model, "--json", *flags))["memory"]
            found = {k: told[k] for k in ("arena", "stack", "weights", "ram")}
            expected = {k: int(macros[v + "_BYTES"]) for k, v in (("arena", "ARENA"), ("stack", "STACK"), ("weights", "WEIGHT"), ("ram", "RAM"))}
            want(found == expected, f"{model} {flags}: {found}, compile has {expected}")


def no_start(w):
    """An engine that cannot start is not a difference: no node is blamed and nothing written."""
    for how in ("--per-node", "--bisect"):
        got = run([w.env.ingot, "verify", MODEL, how], 60, cwd=w.dir, env={"CC": "no-such-compiler"})
        want(got.rc == 5 and "cannot be started" in got.text() and "departs" not in got.text(), f"{how}: {got.rc}: {got.text()}")
    want(not os.listdir(w.dir), f"written: {os.listdir(w.dir)}")


def bisect(w):
    want("agrees" in w.run("verify", MODEL, "--bisect"), "an engine that is right departs")
    env = w.spoiler()
    text = w.run("verify", MODEL, "--bisect", "-o", "part.ing", code=1, env=env)
    want("relu1" in text and "at most 1 before it" in text, f"the wrong place: {text}")
    with open(w.path("part.ing")) as f:
        part = f.read()
    want(part.count(" = ") <= 3 and "max" in part and "conv" not in part, f"not the smallest part:\n{part[:600]}")
    w.run("verify", "part.ing", "--inputs", "part.npz", "--engine", "c", code=1, env=env)
    w.run("verify", "part.ing", "--inputs", "part.npz", "--engine", "c")


def tolerances(w):
    """Default tolerances depend on type and largest magnitude; given tolerances are used as they are."""
    def rows(*args, **how):
        return {r["output"]["name"]: r["output"] for r in json.loads(w.run("verify", *args, "--engine", "c", "--json", **how))["rows"]}
    with open(w.path("badcc"), "w") as f:
        f.write(SED)
    os.chmod(w.path("badcc"), 0o755)
    with open(w.path("steps.ing"), "w") as f:
        f.write(STEPS)
    with open(w.path("plain.ing"), "w") as f:
        f.write(STEPS.replace(", sat=1", ""))
    npy.save(w.path("x.npy"), npy.Array("f32", (8,), [0.5, 1.5, 2.5, 10, 0.25, -0.5, 7, 4]))
    given = ["-i", "x=@x.npy"]
    small, large = ({"CC": "./badcc", "SPOIL": f"s/3\\.0f/{x}f/"} for x in ("2.9999", "2.5"))
    plain = rows("plain.ing", *given, code=1, env=small)
    want(plain["q"]["atol"] == 0 and not plain["q"]["ok"], f"integers: {plain}")
    want(abs(plain["scaled"]["atol"] - 3e-3) < 1e-6 and plain["scaled"]["rtol"] == 1e-4 and plain["scaled"]["ok"], f"floats: {plain}")
    want(not rows("plain.ing", *given, "--atol", "0", "--rtol", "1e-5", code=1, env=small)["scaled"]["ok"], "tolerances that are given are not taken")
    steps = rows("steps.ing", *given, env=small)
    want(steps["q"]["max_abs"] == 1 and steps["q"]["atol"] == 1, f"a step of a quantized model: {steps}")
    want(not rows("steps.ing", *given, code=1, env=large)["q"]["ok"], "a model that quantizes is not judged")
    want("no node departs" in w.run("verify", "steps.ing", *given, "--bisect", env=small), "a node is blamed for a step")
    text = w.run("verify", "steps.ing", *given, "--bisect", "-o", "it's.ing", "--march", "scalar", "--precise", code=1, env=large)
    want("'scaled#0', mul" in text and "--march scalar --precise" in text, f"the wrong place or command: {text}")
    again = text.split("show it with: ")[1].replace("ingot verify", f"{w.env.ingot} verify")
    want("DIFFERS" in run(["sh", "-c", again], 60, cwd=w.dir, env=large).out.decode(), f"the command does not show it: {again}")
    w.run("verify", MODEL, "--bisect", "--engine", "c", "--library", "m.so", code=2)
    both = json.loads(w.run("verify", "steps.ing", *given, "--json", code=1, env=small))["rows"]
    judged = {(r["engine"], r["against"], r["output"]["name"]): r["output"] for r in both}
    want(all(judged["c", "ref", name]["ok"] for name in ("q", "scaled")), f"a step against ref: {both}")
    for name in ("q", "scaled"):
        o = judged["c", "vm", name]
        want(o["rtol"] == 0 and o["atol"] == 0 and not o["ok"], f"C and bytecode may differ where a model quantizes: {o}")


def outliers(w):
    """A few huge numbers do not determine the tolerance of the others."""
    with open(w.path("badcc"), "w") as f:
        f.write(SED)
    os.chmod(w.path("badcc"), 0o755)
    with open(w.path("shift.ing"), "w") as f:
        f.write(SHIFT)

    def shift(values, by, code):
        npy.save(w.path("x.npy"), npy.Array("f32", (8,), values))
        env = {"CC": "./badcc", "SPOIL": f"s/\\b3\\.0f/{by}f/"}
        return json.loads(w.run("verify", "shift.ing", "-i", "x=@x.npy", "--engine", "c", "--json", code=code, env=env))["rows"][0]["output"]
    rest = [0.5, 1.5, 2.5, 10.0, 0.25, -0.5]
    least = -3.4028234663852886e38
    for values in ([1e38, 7.0, *rest], [least, least, *rest], [least] * 7 + [0.5], [-1e9, -1e9, *rest], [least, *[-3.0] * 7]):
        got = shift(values, "3.5", 1)
        want(not got["ok"] and got["atol"] < 2e-3, f"{values} hide 0.5: {got}")
        shift(values, "3.0", 0)
    want(abs(shift([97.0, 7.0, *rest], "3.001", 0)["atol"] - 1e-2) < 1e-6, "an ordinary tensor")
    want(shift([97.0, 7.0, *rest], "3.05", 1)["atol"] > 0, "an ordinary tensor that is wrong")
    # results that cancel next to 1e5 keep the rounding of 1e5; the smallest probabilities do not determine the tolerance
    want(abs(shift([1e5, 7.0, *rest], "3.05", 0)["atol"] - 10) < 1e-2, "terms of 1e5")
    want(abs(shift([-2.0, *[-3.0 + 2.0**-22] * 7], "3.00001", 0)["atol"] - 1e-4) < 1e-8, "tiny numbers beside 1")


# Its gradient with respect to x is 3.
TIMES = """graph (%1 "x": f32[8]) {
  %2: f32[] = const {3}
  %3: f32[8] = mul(%1, %2)
  return %3 "y"
}
"""


# Rows of probabilities: the gradient of their sum is 0.
CHANCES = """graph
(%1 "x": f32[64,32], %2 "w": f32[32,10]) {
  %3 "p": f32[64,10] = contract(%1, %2) {spec="mk,kn->mn"}
  %4: f32[64,1] = reduce_max(%3) {axes=[1], keep=1}
  %5: f32[64,10] = sub(%3, %4)
  %6: f32[64,10] = exp(%5)
  %7: f32[64,1] = reduce_sum(%6) {axes=[1], keep=1}
  %8 "s": f32[64,10] = div(%6, %7)
  %9 "loss": f32[] = reduce_sum(%8) {axes=[0,1], keep=0}
  return %9 "loss"
}
"""


def zero_gradient(w):
    """Probabilities have the sum 1, so the gradient of the sum is 0: every engine leaves another rounding error. Wrong gradients
    are still found."""
    for seed in range(6):
        rows = json.loads(w.run("verify", MODEL, "--grad", "probability", "--engine", "vm", "--seed", str(seed), "--json"))["rows"]
        grad = next(r["output"] for r in rows if r["output"]["name"] == "image.grad")
        want(grad["ok"] and grad["atol"] < 1e-5, f"seed {seed}: {grad}")
    w.run("verify", MODEL, "--grad", "probability", "--engine", "vm", "--atol", "1e-30", code=1)
    with open(w.path("chances.ing"), "w") as f:
        f.write(CHANCES)
    for how in ("--per-node", "--bisect"):
        given = ["verify", "chances.ing", "--grad", "loss", "--engine", "c", how, "-o", "cut.ing"]
        w.run(*given)
        w.run(*given, "--rtol", "0", "--atol", "1e-30", code=1)
    with open(w.path("badcc"), "w") as f:
        f.write(SED)
    os.chmod(w.path("badcc"), 0o755)
    with open(w.path("times.ing"), "w") as f:
        f.write(TIMES)
    w.run("verify", "times.ing", "--grad", "y", "--engine", "c")
    bad = w.run("verify", "times.ing", "--grad", "y", "--engine", "c", code=1, env={"CC": "./badcc", "SPOIL": "s/\\b3\\.0f/3.01f/"})
    want(re.search(r"x\.grad .*DIFFERS", bad), bad)
    for how in ("--per-node", "--bisect"):
        w.run("verify", "times.ing", "--grad", "y", "--engine", "c", how, "-o", "cut.ing", code=1, env={"CC": "./badcc", "SPOIL": "s/\\b3\\.0f/3.01f/"})


def state(w):
    """verify runs steps, each from the state of the previous one; bench supports state too."""
    with open(w.path("sum.ing"), "w") as f:
        f.write('graph (%1 "x": f32[2], %2 "h_in": f32[2]) {\n  %3: f32[2] = add(%1, %2)\n  return %3 "h_out", %3 "y"\n}\n')
    npy.save(w.path("x.npy"), npy.Array("f32", (2,), [1.0, -2.0]))
    given = ["sum.ing", "--state", "h_in=h_out", "-i", "x=@x.npy"]
    rows = json.loads(w.run("verify", *given, "--steps", "5", "--json"))["rows"]
    want({(r["engine"], r["against"]) for r in rows} >= {("vm", "ref"), ("c", "ref"), ("c", "vm")}, f"rows: {rows}")
    want(all(r["output"]["name"] == "y" for r in rows), f"the state is an output: {rows}")
    want(abs(rows[0]["output"]["atol"] - 10 * 1e-4) < 1e-9, f"not the fifth step: {rows}")
    w.run("verify", *given, "--per-node")
    w.run("verify", *given, "--bisect", "--steps", "2", code=2)
    want(json.loads(w.run("bench", *given, "--engine", "interp", "--seconds", "0.001", "--json"))[0]["n"] >= 5, "no times")


def bench(w):
    lines = json.loads(w.run("bench", MODEL, "--seconds", "0.05", "--json"))
    want([line["engine"] for line in lines] == ["vm", "c"], f"engines: {lines}")
    for line in lines:
        want(line["n"] >= 5 and 0 < line["min_ms"] <= line["p50_ms"] <= line["p90_ms"] <= line["p99_ms"], f"times: {line}")
        want(line["rss_kb"] > 100 and line["first_ms"] > 0, f"memory: {line}")
    want(500 < lines[1]["text_bytes"] < 100000 and lines[1]["data_bytes"] > 10000, f"code: {lines[1]}")
    want("P99" in w.run("bench", MODEL, "--seconds", "0.01", "--engine", "interp"), "no table")
    w.run("bench", MODEL, "--engine", "steam", code=2)
    for args in (["bench", MODEL, "--seconds", "0.01"], ["run", MODEL]):  # no thread is idle without a message
        for engine in ("vm", "interp"):
            got = run([w.env.ingot, *args, "--engine", engine, "--threads", "2"], 60)
            want(not got.rc and f"engine {engine} ignores it" in got.text(), f"{args} {engine}: {got.text()}")


def explains(w):
    """opt --explain: every line has both nodes, by the names of the model, and the reason."""
    text = w.run("opt", MODEL, "-d", "batch=1", "--explain", "--stop=fuse")
    lines = [x for x in text.splitlines() if " -> " in x and not x.startswith("group")]
    for line in ("max 'relu1' -> conv 'conv2': its user may read an element many times",
                 "add 'fc' -> reduce_max 'probability', sub 'probability': used more than once",
                 "mul 'probability' -> return: a result of the model or of its region"):
        want(line in lines, f"no line `{line}` in\n{text}")
    want(all(re.fullmatch(r"\w+ \S+ -> (\w+ \S+(, )?)+: [a-z ,]+|\w+ \S+ -> return: [a-z ]+", x) for x in lines), f"lines are\n{text}")
    with open(w.path("many.ing"), "w") as f:
        f.write('graph (%1 "x": f32[2,2,2,2,2]) {\n  %2: f32[2,2,2,2,2] = exp(%1) @("Exp", "", 7)\n' +
                "".join(f'  %{k}: f32[2,2,2,2] = reduce_sum(%2) {{axes=[{k - 3}], keep=0}} @("ReduceSum", "sum{k}", {k})\n' for k in range(3, 8)) +
                "  return %3, %4, %5, %6, %7\n}\n")
    text = w.run("opt", "many.ing", "--start=fuse", "--stop=fuse", "--explain")
    want("exp (node 7, Exp) -> reduce_sum 'sum3', reduce_sum 'sum4', reduce_sum 'sum5' and 2 more: used more than once" in text, text)


CASES = (explains, engines, runtime, figures, per_node, no_start, bisect, tolerances, outliers, zero_gradient, state, bench)


def tests(env):
    return [Test(f"tools/{fn.__name__}", lambda fn=fn: fn(Work(env, fn.__name__)), cost=5) for fn in CASES]
