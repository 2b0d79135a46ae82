"""Tests that are one file, test/{golden,exec,error}/**/*.t. Adding a test is adding a file.

A file opens with comment lines: what it shows, then lines of the form `# key: value`. Then comes text IR.

golden  `# run: ARGS`. `ingot opt --check ARGS FILE` must print the part after the line `# expect`. What it prints is
        read and printed again by `ingot opt --stop=none -` and must come out the same.
exec    `# input NAME = f32[2,2] {1, 2, 3, 4}` and `# output NAME = ...` lines, `# tol: RTOL ATOL` (absent: equal
        to the bit, NaN equals NaN). Runs on every engine, or on those of `# engines: ref interp`. Programs in
        text form become C by `ingot build`, because `run` does not compile them.
error   `# run: VERB ARGS`, `# exit: N`, any number of `# expect-stderr: TEXT`. FILE in ARGS stands for the text;
        without it the text, if there is any, becomes the last argument. Nothing may come on stdout.
"""
import os
import re
import shlex
from . import npy
from .core import ENGINES, ROOT, Fail, Test, explain, run, tail

TOP = os.path.join(ROOT, "test")
LIMIT = 20  # seconds


class TFile:
    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            self.text = f.read()
        self.path = path
        self.name = os.path.relpath(path, TOP)
        self.head, mark, self.expect = self.text.partition("\n# expect\n")
        self.has_expect = bool(mark)
        lines = (self.head + "\n").splitlines(keepends=True)
        self.body = "".join(x for x in lines if not x.startswith("#")).strip("\n")
        self.keys = {}
        for line in lines:
            m = re.match(r"# *(run|exit|expect-stderr|tol|engines|input|output)\b *:? *(.*)", line)
            if m:
                self.keys.setdefault(m[1], []).append(m[2].strip())

    @property
    def form(self):
        """"graph" or "prog", from the first word after the version line; else ""."""
        found = re.match(r"(?:ingot \d+\s+)?(graph|prog)\b", self.body)
        return found[1] if found else ""

    def one(self, key, default=None):
        if key not in self.keys:
            if default is None:
                raise Fail(f"lacks the line `# {key}:`")
            return default
        return self.keys[key][0]

    def write(self, env):
        """Writes the text IR to a file and returns its path."""
        folder = env.scratch("t", os.path.dirname(self.name))
        path = os.path.join(folder, os.path.basename(self.name)[:-2] + ".ing")
        with open(path, "w", encoding="utf-8") as f:
            f.write(self.body + "\n")
        return path


def same_text(got, want, what):
    if got == want:
        return
    a, b = got.splitlines(), want.splitlines()
    for i in range(max(len(a), len(b))):
        x, y = a[i] if i < len(a) else "(end)", b[i] if i < len(b) else "(end)"
        if x != y:
            raise Fail(f"{what}: line {i + 1}\n  got    {x}\n  expect {y}")
    raise Fail(f"{what}: they differ in line ends")


def reprint(env, text):
    got = run([env.ingot, "opt", "--stop=none", "--constants=all", "-"], LIMIT, stdin=text.encode())
    if got.rc:
        raise Fail(f"the printed text is not read back: {explain(got)}: {tail(got.text())}")
    same_text(got.out.decode(), text, "printing what was read back")


def golden(env, t):
    env.need_ingot()
    path = t.write(env)
    args = shlex.split(t.one("run"))
    got = run([env.ingot, "opt", "--check", "--constants=all", *args, path], LIMIT)
    if got.rc:
        raise Fail(f"{explain(got)}: {tail(got.text())}")
    text = got.out.decode()
    if env.bless and text.strip("\n") != t.expect.strip("\n"):
        with open(t.path, "w", encoding="utf-8") as f:
            f.write(t.head.rstrip("\n") + "\n\n# expect\n" + text)
    elif not t.has_expect:
        raise Fail("lacks the line `# expect`")
    else:
        same_text(text.strip("\n"), t.expect.strip("\n"), "output of ingot opt")
    reprint(env, text)


def parse_array(line):
    m = re.fullmatch(r"(.+?) *= *(\w+)\[([\d, ]*)\] *\{(.*)\}", line)
    if not m:
        raise Fail(f"cannot read `{line}`; expected NAME = TYPE[SHAPE] {{VALUES}}")
    name, kind, dims, values = m.groups()
    shape = tuple(int(d) for d in dims.replace(",", " ").split())
    if kind not in npy.KINDS:
        raise Fail(f"type {kind} cannot be written here")
    words = values.replace(",", " ").split()
    if kind == "bool":
        data = [w in ("1", "true") for w in words]
    elif kind[0] == "f":
        data = [float.fromhex(w) if "0x" in w else float(w) for w in words]
    else:
        data = [int(w, 0) for w in words]
    if len(data) == 1 and npy.count(shape) > 1:
        data *= npy.count(shape)
    if len(data) != npy.count(shape):
        raise Fail(f"{name}: {len(data)} values for {npy.count(shape)} elements")
    return name, npy.Array(kind, shape, data)


def execute(env, t):
    env.need_ingot()
    path = t.write(env)
    program = t.form == "prog"
    rtol, atol = (float(x) for x in t.one("tol", "0 0").split()[:2])
    inputs, want = (dict(parse_array(line) for line in t.keys.get(key, [])) for key in ("input", "output"))
    npy.save_npz(path + ".npz", inputs)
    args = ["--inputs", path + ".npz"] if inputs else []
    if not want:
        raise Fail("lacks `# output` lines")
    if not program:
        got = run([env.ingot, "opt", "--check", path, *args, "--quiet", "--output", path + ".ing"], LIMIT)
        if got.rc:
            raise Fail(f"opt --check: {explain(got)}: {tail(got.text())}")
    every = dict.fromkeys((*ENGINES, "c"))
    for engine in t.one("engines", " ".join(e for e in every if e != "ref" or not program)).split():
        result, made = f"{path}.{engine}.npz", path + ".program"
        if os.path.exists(result):
            os.unlink(result)
        commands = [[env.ingot, "run", path, "--engine", engine]]
        if program and engine == "c":
            commands = [[env.ingot, "build", path, "-O", "0", "-o", made], [made]]
        commands[-1] += [*args, "--output", result]
        for command in commands:
            got = run(command, LIMIT)
            if got.rc:
                raise Fail(f"{engine}: {explain(got)}: {tail(got.text())}")
        have = npy.load_npz(result)
        for name, a in want.items():
            if name not in have:
                raise Fail(f"{engine}: output {name} is missing, there are: {' '.join(have)}")
            reason = npy.differ(have[name], a, rtol, atol)
            if reason:
                raise Fail(f"{engine}: output {name} {reason}")


def error(env, t):
    env.need_ingot()
    args = shlex.split(t.one("run"))
    if t.body:
        path = t.write(env)
        args = [a.replace("FILE", path) for a in args] if "FILE" in t.one("run") else args + [path]
    got = run([env.ingot, *args], LIMIT)
    if got.rc != int(t.one("exit")):
        raise Fail(f"{explain(got)}, expected exit {t.one('exit')}: {tail(got.text())}")
    for text in t.keys.get("expect-stderr", []):
        if text not in got.text():
            raise Fail(f"stderr lacks `{text}`: {tail(got.text())}")
    if got.out:
        raise Fail("something was written to stdout")


def files(kind):
    """All files of test/KIND, in order."""
    return [TFile(os.path.join(folder, name)) for folder, _, names in sorted(os.walk(os.path.join(TOP, kind)))
            for name in sorted(names) if name.endswith(".t")]


def tests(env):
    return [Test(t.name[:-2], lambda t=t, fn=fn: fn(env, t))
            for kind, fn in (("golden", golden), ("exec", execute), ("error", error)) for t in files(kind)]
