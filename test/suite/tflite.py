"""TensorFlow Lite models: test/tflite/*.py on every engine and, in part, as C, compared with the reference kernels of TensorFlow
Lite.

Floats agree within a tolerance.
Integers are equal; a case with differences states their size, their largest fraction, and the reason.
Malformed files are here too: truncated, with changed bytes, with contradictory numbers.
"""
import glob
import json
import os
import re
import struct
from lib import npy
from lib.core import ROOT, SANITIZER, Fail, Skip, Test, explain, run, tail, want
from suite.cli import Cli

LIMIT = 60
ENGINES = ("ref", "vm")  # other suites compare interp with vm


def load(env):
    return env.cases("tflitecases", "mktflite.py", ["tflite", "make/tflitefile.py", "requirements-tflite.txt"], path=env.need_packages("tflite"))


def off(case, have, expected):
    """Returns None, or the difference of two integer arrays that exceeds what the case allows."""
    if (have.kind, have.shape) != (expected.kind, expected.shape):
        return f"is {have.kind}{list(have.shape)}, expected {expected.kind}{list(expected.shape)}"
    apart = [abs(int(a) - int(b)) for a, b in zip(have.data, expected.data)]
    n = sum(x > 0 for x in apart)
    if n and (max(apart) > case["steps"] or n > case["share"] * len(apart)):
        at = next(i for i, x in enumerate(apart) if x)
        return f"{n} of {len(apart)} differ, by at most {max(apart)}: element {at} is {have.data[at]}, expected {expected.data[at]}"
    return None


def check(env, folder, case, engine, march=None):
    where, to = os.path.join(folder, case["name"]), os.path.join(env.scratch("tflite", *case["name"].split("/")), f"{engine}-{march}.npz")
    for k in range(case["runs"]):
        how = ["--steps", str(k + 1)] if case["state"] else []
        how += ["--march", march] if march else []
        got = run([env.need_ingot(), "run", os.path.join(where, "model.tflite"), "--inputs", os.path.join(where, f"in_{0 if case['state'] else k}.npz"),
                   "--output", to, "--engine", engine, *how], LIMIT)
        if case["refuse"]:
            want(got.rc == 3 and case["refuse"] in got.text(), f"{explain(got)}, expected a refusal that says {case['refuse']!r}: {tail(got.text(), 3)}")
            return
        if got.rc or got.timed_out:
            raise Fail(f"{explain(got)}: {tail(got.text(), 6)}")
        have, expected = npy.load_npz(to), npy.load_npz(os.path.join(where, f"out_{k}.npz"))
        want(list(have) == list(expected), f"outputs are {list(have)}, expected {list(expected)}")
        for name, y in expected.items():
            bad = npy.differ(have[name], y, case["rtol"], case["atol"]) if y.kind in ("f32", "f16", "f64") else off(case, have[name], y)
            if bad:
                raise Fail(f"run {k}, output {name}: {bad}")


# ---- without the packages: files kept for the fuzzer ----

def kept(name):
    return os.path.join(ROOT, "test", "fuzz", "fuzz_tflite", name + ".tflite")


def damage(env, build):
    """Files truncated at every length and with every bit flipped: test/unit/lite_file.c."""
    if build == "build-asan":
        env.make("asan")
    tool = os.path.join(ROOT, build, "unit", "lite_file")
    if not os.path.exists(tool):
        raise Skip(f"{build}/unit is not built")
    got = run([tool, *sorted(glob.glob(kept("*")))], 200, env=SANITIZER)
    want(got.rc == 0, f"{explain(got)}: {tail(got.text())}")


def verbs(env):
    """Commands that people type first."""
    c = Cli(env, "tflite-verbs")
    got = json.loads(c.run("inspect", "--json", kept("add")).out)
    want(got["operators"] == {"ADD": 1}, f"inspect: {got}")
    want([x["name"] for x in got["inputs"]] == ["x0", "x1"], f"inspect: {got['inputs']}")
    for engine in ("ref", "interp", "vm", "c"):
        c.run("run", kept("while"), "--engine", engine, "--output", engine + ".npz", "--input", "x0=2", "--input", "x1=ones")
        have = npy.load_npz(c.path(engine + ".npz"))
        want([a.data for a in have.values()][0] == [6], f"{engine}: {have}")
    c.run("verify", kept("detection"))
    c.run("compile", kept("add"), "-o", "net.c")
    with open(c.path("net.h")) as f:
        want("_run(" in f.read(), "net.h has no function")
    c.run("build", kept("variable"), "-o", "libnet.a")
    ops = c.run("ops").out.decode()
    want("DEPTHWISE_CONV_2D" in ops and "LSH_PROJECTION" not in ops, "ops: operators of TensorFlow Lite")


def scales(env):
    """Real values of int8 inputs and outputs: inspect, the header, and conversion from floats."""
    c = Cli(env, "tflite-scales")
    got = json.loads(c.run("inspect", "--json", kept("add")).out)
    told = [x["quantized"] for x in got["inputs"] + got["outputs"]]
    want([x["zero"] for x in told] == [-5, 12, 3] and [round(x["scale"], 6) for x in told] == [0.05, 0.03, 0.08], f"inspect --json: {told}")
    want("x0: i8[2,3,40], quantized: (x + 5) * 0.0500000007\n" in c.run("inspect", kept("add")).out.decode(), "inspect says no scale")
    want("quantized" not in c.run("inspect", kept("sparse")).out.decode(), "a scale of floats")
    c.run("compile", kept("add"), "-o", "net.c")
    with open(c.path("net.h")) as f:
        header = f.read()
    for line in ("NET_INPUT0_SCALE 0.0500000007f ", "NET_INPUT0_ZERO (-5)\n", "NET_INPUT1_ZERO 12\n", "NET_OUTPUT0_SCALE 0.0799999982f ", "NET_OUTPUT0_ZERO 3\n"):
        want(f"#define {line}" in header, f"net.h lacks {line!r}")
    c.save("x.npy", npy.encode(npy.Array("f32", (2, 3, 40), [0.5] * 240)))
    c.run("run", kept("add"), "--input", "x0=@x.npy", code=4, text='np.clip(np.round(x / 0.0500000007 - 5), -128, 127).astype("int8")')


def own_names(env):
    """Inputs have the names of the signature; the names of the tensors work too."""
    c = Cli(env, "tflite-names")
    npy.save_npz(c.path("x.npz"), {"serving_default_keras_tensor:0": npy.Array("i8", (1, 4), [1, 2, -3, -4])})
    for how in (("--input", "keras_tensor=[[1,2,-3,-4]]"), ("--input", "serving_default_keras_tensor:0=[[1,2,-3,-4]]"), ("--inputs", "x.npz")):
        c.run("run", kept("signature"), *how, "--output", "y.npz")
        want(npy.load_npz(c.path("y.npz"))["output_0"].data == [1, 2, -3, -3], f"{how}: other numbers")


def state(env):
    """A variable starts as CALL_ONCE sets it, and changes with every run, in C too."""
    c = Cli(env, "tflite-state")
    for engine in ("ref", "interp", "vm", "c"):
        for steps in (1, 3):
            c.run("run", kept("variable"), "--engine", engine, "--steps", str(steps), "--input", "x0=1", "--output", "y.npz")
            y = next(iter(npy.load_npz(c.path("y.npz")).values())).data
            want(y == [(k + steps) ** 2 for k in (1, 2, 3, 4)], f"{engine}, {steps} runs: {y}")


def wrong(env):
    """Contradictory numbers; each refusal names them."""
    c = Cli(env, "tflite-wrong")
    with open(kept("add"), "rb") as f:
        good = f.read()
    cases = (("empty", good[:8], "FlatBuffer"), ("root", struct.pack("<I", 1 << 30) + good[4:], "FlatBuffer"),
             ("mark", good[:4] + b"TFL2" + good[8:], ""), ("half", good[:len(good) // 2], "FlatBuffer"))
    for name, data, text in cases:
        got = run([env.need_ingot(), "inspect", c.save(name + ".tflite", data)], 20, cwd=c.dir)
        want(got.rc in (3, 4) and text in got.text(), f"{name}: {explain(got)}: {got.text()}")


# Files of test/tflite/hostile: well-formed, with numbers that no converter writes.
HOSTILE = {"bias_wide": "the bias: expected one element for each output channel", "blocks_concat": "is quantized in groups", "blocks_pad": "is quantized in groups",
           "blocks_quantize": "is quantized in groups", "blocks_relu": "is quantized in groups", "reshape_far": "element 0 of the shape is -4611686018427387904",
           "reshape_negative": "element 0 of the shape is -2", "reshape_option": "element 0 of the shape is -5", "reshape_twice": "element 1 of the shape is -1",
           "scales_elsewhere": "scales on axis 7, expected one", "strings": "has strings", "window_3d": "a window has extent 0", "window_none": "a window has extent 0",
           "window_transpose": "a window has extent 0"}


def hostile(env):
    for path in sorted(glob.glob(os.path.join(ROOT, "test", "tflite", "hostile", "*.tflite"))):
        name = os.path.basename(path)[:-7]
        got = run([env.need_ingot(), "inspect", path], 20)
        said = got.text() + got.out.decode("utf-8", "replace")
        want(got.rc in (3, 4) and HOSTILE[name] in said, f"{name}: {explain(got)}: {tail(said, 3)}")


# ---- options ----

def schema(env):
    """{number of the options table: {field: (name without underscores, default)}}, from the package's reader of the format."""
    with open(os.path.join(env.need_packages("tflite"), "ai_edge_litert", "schema_py_generated.py")) as f:
        text = f.read()
    found = {}
    for name, number in re.findall(r"(\w+) = (\d+)", re.search(r"class BuiltinOptions\(object\):\n(.*?)\n\n", text, re.S)[1]):
        body = re.search(rf"^class {name}\(object\):\n(.*?)^(?:def|class) ", text, re.S | re.M)
        fields = re.findall(r"    def (\w+)\(self(?:, j)?\):\n        o = [\w.]+\(self\._tab\.Offset\((\d+)\)\)\n.*?\n        return ([\w.]+)\n", body[1], re.S) if body else ()
        found[number] = {(int(at) - 4) // 2: (f.lower(), float(x == "True" or x not in ("False", "None") and float(x)))
                         for f, at, x in fields if not f.endswith(("AsNumpy", "Length", "IsNone"))}
    return found


def options(env):
    """Options have the names and the defaults of the format, and appear in the page of inspect."""
    there = schema(env)
    with open(os.path.join(ROOT, "src", "front", "tflite", "tflite_options.def")) as f:
        table = re.findall(r'^OPTIONS\((\d+), \w+, "(.*)"\)$', f.read(), re.M)
    want(len(table) > 40, f"{len(table)} rows")
    for number, fields in table:
        for k, field in enumerate(fields.split()):
            if field != "-":
                name, kind = field.split(":")
                want(there[number].get(k) == (name.replace("_", ""), float(kind[1:] or 0)), f"{number}: {field} is {there[number].get(k)}")
    c = Cli(env, "tflite-options")
    c.run("inspect", kept("pool"), "--html", "page.html")
    with open(os.path.join(c.dir, "page.html")) as f:
        want("padding=SAME, stride_w=2, stride_h=2, filter_width=3, filter_height=3, fused_activation_function=NONE" in f.read(), "no options in the page")


# ---- the page about it ----

def rows():
    """{name: is it supported?}, from tflite_ops.def."""
    with open(os.path.join(ROOT, "src", "front", "tflite", "tflite_ops.def")) as f:
        return {m[2]: m[1] == "TF" for m in re.finditer(r"^(TF|NO)\(\d+, (\w+)", f.read(), re.M)}


def page():
    with open(os.path.join(ROOT, "docs", "tflite.md")) as f:
        return f.read()


def documented():
    """docs/tflite.md lists exactly the supported operators."""
    text = page()
    part = text[text.index("## Operators"):text.index("## Results")]
    named = set(re.findall(r"`([A-Za-z0-9_]+)`", part))
    built = {name for name, there in rows().items() if there}
    want(named == built, f"not in docs/tflite.md: {sorted(built - named)}; not in the table: {sorted(named - built)}")


def covered(table):
    """Every supported operator has a case, and the page lists those whose results may differ."""
    have = {op for case in table for op in case["ops"] if not case["refuse"]}
    missing = {name for name, there in rows().items() if there} - have
    want(not missing, f"no case of {sorted(missing)}")
    part = page()[page().index("## Results"):]
    for case in table:
        if case["steps"]:
            want(case["why"], f"{case['name']} may be steps apart and does not say why")
            want((any if len(case["ops"]) > 1 else all)(f"`{op}`" in part for op in case["ops"]), f"{case['ops']} may be steps apart, docs/tflite.md does not say so")


def tests(env):
    own = [*(Test(f"tflite/damage{mark}", lambda b=build: damage(env, b), 2) for build, mark in (("build", ""), ("build-asan", "-asan"))),
           Test("tflite/verbs", lambda: verbs(env), 2), Test("tflite/verbs-scales", lambda: scales(env), 1), Test("tflite/verbs-names", lambda: own_names(env), 0.3), Test("tflite/state", lambda: state(env), 2), Test("tflite/wrong", lambda: wrong(env), 0.1), Test("tflite/hostile", lambda: hostile(env), 0.3),
           Test("tflite/documented", documented), Test("tflite/options", lambda: options(env))]
    try:
        folder, table = load(env)
    except (Fail, Skip) as e:
        def say(e=e):
            raise e
        return [*own, Test("tflite/setup", say)]
    return [*own, Test("tflite/covered", lambda: covered(table))] + [
            Test(f"tflite/{case['name']}/{engine}", lambda c=case, g=engine: check(env, folder, c, g), 0.05)
            for case in table for engine in (*ENGINES, *(("c",) if case["compiled"] else ()))] + [
            # register tiles of microcontrollers: their C is portable
            Test(f"tflite/{case['name']}/{march}", lambda c=case, m=march: check(env, folder, c, "c", m), 0.5)
            for case in table if re.match(r"layers/(conv|depthwise|fully_connected)_.*_[iu]8$", case["name"]) and not case["refuse"] for march in ("cortex-m", "cortex-m4")]
