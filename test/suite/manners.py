"""Behavior that is the same for every verb: --quiet, --verbose, --json, colors only on a terminal without NO_COLOR, suggestions
for misspelled words, progress only on a terminal."""
import json
import re

from lib import npy, onnxfile
from lib.core import Test, want
from lib.onnxfile import chunk
from suite.cli import MODEL, Cli
from suite.safety import on_terminal

CHECK = "*"

ESCAPE = b"\x1b["


def verbs(c):
    return re.findall(r"^  ([a-z]+) ", c.run("--help").out.decode(), re.M)


def everywhere(c):
    """Every verb accepts --quiet, --verbose and --help, and lists them."""
    for verb in verbs(c):
        text = c.run(verb, "--help").out.decode()
        for option in ("--quiet", "--verbose", "--help", "--help-all"):
            want(re.search(rf"^  (-\w, )?{option} ", text, re.M), f"{verb} --help lacks {option}")
        c.run(verb, "--help", "--quiet", "--verbose")


def groups(c):
    """--help has the options of the usage line, --help-all every option once, under headings; lines have at most 100 columns."""
    for verb in verbs(c):
        short, full = (c.run(verb, how).out.decode() for how in ("--help", "--help-all"))
        for line in (short + full).splitlines():
            want(len(line) <= 100, f"{verb}: {len(line)} columns: {line}")
        rows = {text: re.findall(r"^  (?:-\w, )?(--[\w-]+)", text, re.M) for text in (short, full)}
        want(len(set(rows[full])) == len(rows[full]), f"{verb}: an option is listed twice: {rows[full]}")
        want(set(rows[short]) <= set(rows[full]), f"{verb}: --help-all lacks options of --help")
        more = re.search(r"^(\d+) more options?: ingot \w+ --help-all$", short, re.M)
        want(len(rows[full]) - len(rows[short]) == (int(more[1]) if more else 0), f"{verb}: {more}, {rows}")
        usage = short.split("\n\n")[0]
        want(set(re.findall(r"--[a-z-]+", usage)) <= set(rows[short]), f"{verb} --help lacks an option of its usage line")
    text = c.run("--help").out.decode()
    want(all(f"\n{x}:\n" in text for x in ("compile", "run", "examine", "change", "language", "ingot")), text)
    want(max(map(len, text.splitlines())) <= 100, "ingot --help has long lines")


def quiet(c):
    """The built-in model has a symbolic dimension: --quiet removes the warning, results stay."""
    loud, silent = c.run("run", MODEL, "--seed", "1"), c.run("run", MODEL, "--seed", "1", "--quiet")
    want("warning" in loud.text() and silent.text() == "" and loud.out == silent.out, f"{loud.text()} / {silent.text()}")


def verbose(c):
    """--verbose prints the steps with their times; standard output stays the same."""
    plain, said = c.run("compile", MODEL, "-d", "batch=1"), c.run("compile", MODEL, "-d", "batch=1", "--verbose")
    for step in ("import", "graph passes", "lower", "kernel passes", "emit", "compile"):
        want(plain.out == said.out and re.search(rf"^ingot: {step}: \d+\.\d\d s$", said.text(), re.M), f"{step}: {said.text()}")
    for verb, task, args in (("run", "vm", []), ("inspect", "inspect", []), ("export", "export", ["--project", "cmake", "-o", "net"]), ("build", "build", ["-o", "net.o"])):
        want(re.search(rf"^ingot: {task}: \d+\.\d\d s$", c.run(verb, MODEL, *args, "--verbose").text(), re.M), verb)


ELSEWHERE = {"train": None, "tokenize": None, "perplexity": None, "doctor": None}  # suites train, tokens and pgo


def data(c):
    """--json prints one JSON text for every verb that accepts it."""
    npy.save_npz(c.path("x.npz"), {"image": npy.Array("f32", (4, 1, 8, 8), [(i * 7 % 17) / 16 for i in range(256)])})
    calls = {"compile": [MODEL, "-d", "batch=1", "-o", "net.c"], "run": [MODEL, "-d", "batch=1"], "verify": [MODEL, "-d", "batch=1", "--engine", "interp"],
             "quantize": [MODEL, "--data", "x.npz", "-o", "q.onnx"], "build": [MODEL, "-d", "batch=1", "-o", "net.o"], "export": [MODEL, "-d", "batch=1", "--project", "cmake", "-o", "net"], "inspect": [MODEL], "ops": [], "cache": [], "passes": [], "bench": [MODEL, "--engine", "vm", "--seconds", "0.01"],
             **ELSEWHERE}
    have = {verb for verb in verbs(c) if re.search(r"^  --json ", c.run(verb, "--help").out.decode(), re.M)}
    want(have == set(calls), f"verbs with --json that are not tried, or have none: {sorted(have ^ set(calls))}")
    for verb, args in calls.items():
        if args is not None:
            json.loads(c.run(verb, *args, "--json").out)
    got = json.loads(c.run("run", MODEL, "-d", "batch=1", "--seed", "7", "--input", "image=rand", "--json").out)["outputs"]
    want([(o["name"], o["type"], o["shape"], o["nan"], len(o["first"])) for o in got] == [("probability", "f32", [1, 10], 0, 8)], f"run: {got}")
    want(abs(got[0]["max"] - 0.883675) < 1e-5, f"run: {got}")
    told, memory = json.loads(c.run("compile", MODEL, "-d", "batch=1", "-o", "net.c", "--json").out), json.loads(c.run("inspect", MODEL, "-d", "batch=1", "--json").out)["memory"]
    want(told["source"] == "net.c" and all(told[k] == memory[k] for k in ("arena", "stack", "ram", "code")), f"compile: {told} {memory}")
    folder = json.loads(c.run("export", MODEL, "-d", "batch=1", "--project", "rust", "-o", "box_net", "--json").out)
    want((folder["folder"], folder["for"], folder["name"]) == ("box_net", "rust", "digits") and folder["ram"] == told["ram"], f"export: {folder}")
    want([p["name"] for p in json.loads(c.run("passes", "--json").out)][:2] == ["infer", "strings"], "passes")
    c.run("compile", MODEL, "--json", code=2, text="--output")


def strings(x):
    return [x] if isinstance(x, str) else sum((strings(y) for y in (x.values() if isinstance(x, dict) else x if isinstance(x, list) else ())), [])


def texts(c):
    """--json is valid UTF-8 JSON for any names in a model: characters as they are, invalid bytes escaped."""
    for raw, shown in (("é 名前 🙂 \u2028<&>\"\\\x7f\x01".encode(), None), (b"\xff\xc3\xa9\xe2\x80 \xf0\x9f", "\\xffé\\xe2\\x80 \\xf0\\x9f")):
        name, g = shown or raw.decode(), onnxfile.Graph()
        g.parts.append(chunk(1, chunk(1, "x") + chunk(2, raw) + chunk(3, b"n" + raw) + chunk(4, "Relu")))
        g.input([2], name="x")
        g.output(raw, [2])
        c.save("net.onnx", onnxfile.model(g))
        told = {verb: json.loads(c.run(verb, "net.onnx", *args, "--json").out.decode("utf-8")) for verb, args in
                (("inspect", []), ("run", []), ("verify", ["--engine", "interp"]), ("bench", ["--engine", "vm", "--seconds", "0.01"]))}
        want(told["run"]["outputs"][0]["name"] == name, f"run: {told['run']}")
        want(told["inspect"]["outputs"][0]["name"] == name, f"inspect: {told['inspect']['outputs']}")
        want(name in strings(told["verify"]), f"verify: {told['verify']}")


def colors(c):
    """Colors of warnings and verdicts on a terminal; none with NO_COLOR, on a dumb terminal, or elsewhere."""
    warning, table = [c.env.ingot, "run", MODEL, "--seed", "1"], [c.env.ingot, "verify", MODEL, "-d", "batch=1", "--engine", "interp", "--quiet"]
    for args, stream, mark in ((warning, "stderr", b"\x1b[33mwarning: \x1b[0m"), (table, "stdout", b"\x1b[32mok\x1b[0m")):
        want(mark in on_terminal(args, c.dir, stream, TERM="xterm", NO_COLOR=""), f"{args}: no color")
        for env in ({"TERM": "xterm", "NO_COLOR": "1"}, {"TERM": "dumb", "NO_COLOR": ""}):
            said = on_terminal(args, c.dir, stream, **env)
            want(ESCAPE not in said.replace(b"\r\x1b[K", b""), f"{args} {env}: {said}")
        got = c.run(*args[1:])
        want(ESCAPE not in got.out + got.err, f"{args}: colors in a file")


def passes(c):
    c.run("opt", MODEL, "--stop=cannon", code=2, text="did you mean 'canon'?")
    c.run("opt", MODEL, "--dump=fsue,lower", code=2, text="did you mean 'fuse'?")
    want("did you mean" not in c.run("opt", MODEL, "--skip=steam", code=2).text(), "a guess out of the blue")


def chosen(c):
    """Without --march, the target and its alternatives are printed on a terminal or with --verbose, but not to a log."""
    portable, here = "target scalar, portable C", "this CPU; --march multi"
    for args, line in ((["compile", MODEL, "-d", "batch=1", "-o", "net.c"], portable), (["inspect", MODEL, "-d", "batch=1"], portable),
                       (["export", MODEL, "-d", "batch=1", "--project", "make", "-o", "x"], portable), (["build", MODEL, "-d", "batch=1", "-o", "net.o"], here)):
        want(line in c.run(*args, "--verbose").text(), f"{args}: no word of the target")
        want(args[0] == "build" or line.encode() in on_terminal([c.env.ingot, *args], c.dir, "stderr", TERM="xterm", NO_COLOR="1"), f"{args}: no word of the target on a terminal")
        for more in ([], ["--verbose", "--march", "sse2"], ["--quiet"]) if args[0] != "build" else ([],):
            said = c.run(*args, *more).text()
            want("target s" not in said and here not in said, f"{args} {more}: {said}")
    for args in (["compile", MODEL, "-d", "batch=1", "-o", "net.igb"], ["export", MODEL, "-d", "batch=1", "--project", "arduino", "-o", "y"]):
        want("target " not in c.run(*args, "--verbose").text(), f"{args}: a target that nobody chose")


CASES = (everywhere, groups, chosen, quiet, verbose, data, texts, colors, passes)


def tests(env):
    return [Test(f"cli/manners/{fn.__name__}", lambda fn=fn: fn(Cli(env, "manners_" + fn.__name__)), cost=1) for fn in CASES]
