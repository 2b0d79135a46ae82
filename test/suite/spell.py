"""One computation as several exporters write it (test/spell/*.t): every spelling must give the same groups and agree with ONNX
Runtime on every engine.

A file opens with comment lines: what it shows, then `# key: value`:

groups    number of groups after the pass fuse, the same for every spelling
differ    reason why the graphs may differ after the pass fuse; absent: they are equal, except for the last digits of constants
tol       RTOL ATOL relative to ONNX Runtime; absent: 1e-5 1e-5

Each spelling has a line `# spelling: NAME [OPSET]` and a graph in the syntax of onnx.parser.
test/make/mkspell.py describes its parameters.
"""
import os
import re
from lib import npy
from lib.core import ROOT, Fail, Skip, Test, must

FOLDER = os.path.join(ROOT, "test", "spell")
EVERY = ("ref", "interp", "c")
LIMIT = 60


def files():
    return sorted(x for x in os.listdir(FOLDER) if x.endswith(".t"))


def head(path):
    keys, names = {}, []
    with open(path, encoding="utf-8") as f:
        for line in f:
            m = re.match(r"# *(groups|differ|tol): *(.*)", line)
            if m:
                keys[m[1]] = m[2].strip()
            m = re.match(r"# spelling: *(\S+)", line)
            if m:
                names.append(m[1])
    return keys, names


def ingot(env, verb, model, *args):
    """Standard output."""
    return must([env.ingot, verb, model, "--quiet", *args], os.path.basename(model), timeout=LIMIT)


NODE = re.compile(r'%(\d+)(?: "(?:[^"\\\\]|\\\\.)*")?: (\S+(?: inline| epilogue)?) = (.*?)(?: @\(.*\))?$')


def plain(text):
    """A graph without labels and positions, in a canonical order: operands first, from the results on; constants to four digits."""
    nodes, results = {}, []
    for line in text.splitlines():
        m = NODE.match(line.strip())
        if m:
            nodes[m[1]] = (m[2], re.sub(r"-?\d+\.\d+(e-?\d+)?|\d+e-?\d+", lambda x: f"{float(x[0]):.4g}", m[3]))
        elif line.strip().startswith("return "):
            results = re.findall(r"%(\d+)", line)
    number, lines = {}, []

    def visit(v):
        if v in number or v not in nodes:
            return number.get(v, "x" + v)
        kind, body = nodes[v]
        body = re.sub(r"%(\d+)", lambda m: "%" + visit(m[1]), body)
        number[v] = str(len(number))
        lines.append(f"%{number[v]}: {kind} = {body}")
        return number[v]
    for v in results:
        visit(v)
    return lines


def near(what, raw, expected, rtol, atol):
    a, b = npy.decode(raw), npy.decode(expected)
    if (a.kind, a.shape) != (b.kind, b.shape):
        raise Fail(f"{what} is {a.kind}{list(a.shape)}, expected {b.kind}{list(b.shape)}")
    for i, (x, y) in enumerate(zip(a.data, b.data)):
        if not (x == y or abs(x - y) <= atol + rtol * abs(y)):
            raise Fail(f"{what}: element {i} is {x!r}, expected {y!r}")


def compute(env, folder, name, rtol, atol):
    want = npy.load_npz_raw(os.path.join(folder, name + ".npz"))
    for engine in EVERY:
        out = os.path.join(env.scratch("spell", os.path.basename(folder)), f"{name}-{engine}.npz")
        ingot(env, "run", os.path.join(folder, name + ".onnx"), "--inputs", os.path.join(folder, "inputs.npz"), "--engine", engine, "--output", out)
        have = npy.load_npz_raw(out)
        for key in want:
            near(f"{name}, {engine}, {key}", have[key], want[key], rtol, atol)


def check(env, file, out):
    env.need_ingot()
    keys, names = head(os.path.join(FOLDER, file))
    folder = os.path.join(out, file[:-2])
    rtol, atol = map(float, keys.get("tol", "1e-5 1e-5").split())
    first = None
    for name in names:
        model = os.path.join(folder, name + ".onnx")
        groups = sum(line.startswith("group ") for line in ingot(env, "opt", model, "--explain").splitlines())
        if groups != int(keys["groups"]):
            raise Fail(f"{name}: {groups} groups, expected {keys['groups']}")
        text = plain(ingot(env, "opt", model, "--check", "--stop=fuse"))
        first = first or text
        for a, b in zip(first, text) if "differ" not in keys else ():
            if a != b:
                raise Fail(f"{names[0]} and {name} are not the same graph:\n  {a.strip()}\n  {b.strip()}")
        compute(env, folder, name, rtol, atol)


def tests(env):
    out = os.path.join(env.build, "spell")
    if not env.python:
        def no_python():
            raise Skip("no Python environment (see build/setup.log), so the models cannot be made")
        return [Test("spell/models", no_python)]
    try:
        env.generated(out, ["make/mkspell.py", *("spell/" + x for x in files())],
                      lambda: env.script("mkspell.py", out, *(os.path.join(FOLDER, x) for x in files())))
    except Fail as e:
        def broken(e=e):
            raise e
        return [Test("spell/models", broken)]
    return [Test("spell/" + x[:-2], lambda x=x: check(env, x, out)) for x in files()]
