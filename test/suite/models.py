"""Real models (test/models.txt) compared with ONNX Runtime, on ref and vm, on random and realistic input.

test/make/mkmodels.py wrote inputs and expected outputs.
Streaming models run 100 steps; each step starts from the state of the previous one.
The largest error may be 1e-4 x max(1, largest output), and elements above that floor must agree to 1e-3 of their size.
If the model classifies, the arg-max must be equal.
"""
import json
import math
import os
import shutil
from lib import npy
from lib.core import ENGINES, ROOT, Fail, Skip, Test, explain, run, tail

FLOOR, RTOL = 1e-4, 1e-3
LIMIT = 300


def largest(a, axis):
    """Index of the largest element along one axis, for every position of the other axes."""
    inner = math.prod(a.shape[axis + 1:])
    n = a.shape[axis]
    out = []
    for base in range(0, len(a.data), n * inner):
        for i in range(inner):
            column = a.data[base + i:base + n * inner:inner]
            out.append(column.index(max(column)))
    return out


def compare(got, want, argmax):
    if got.kind != want.kind or got.shape != want.shape:
        raise Fail(f"is {got.kind}{list(got.shape)}, expected {want.kind}{list(want.shape)}")
    floor = FLOOR * max(1.0, max(map(abs, want.data), default=0.0))
    for i, (a, b) in enumerate(zip(got.data, want.data)):
        error = abs(a - b)
        if not error <= floor:
            raise Fail(f"element {i} is {a!r}, expected {b!r}: more than {floor:.1e} off")
        if abs(b) > floor and error > RTOL * abs(b):
            raise Fail(f"element {i} is {a!r}, expected {b!r}: more than {RTOL} of it off")
    if argmax is not None and largest(got, argmax) != largest(want, argmax):
        raise Fail("another class has the largest value")


def check(env, case, engine):
    env.need_ingot()
    work = env.scratch("models", f"{case['name']}-{engine}")
    shutil.rmtree(work)
    os.makedirs(work)
    result = os.path.join(work, "out.npz")
    inputs = npy.load_npz_raw(os.path.join(case["folder"], "inputs.npz"))
    expected = npy.load_npz_raw(os.path.join(case["folder"], "expected.npz"))
    carried = {}
    for step in range(case["steps"]):
        given = {k.split("/", 1)[1]: v for k, v in inputs.items() if k.startswith(f"{step}/")}
        args = []
        for i, (name, raw) in enumerate({**given, **carried}.items()):
            path = os.path.join(work, f"{i}.npy")
            with open(path, "wb") as f:
                f.write(raw)
            args += ["--input", f"{name}=@{path}"]
        got = run([env.ingot, "run", case["model"], "--engine", engine, *args, "--output", result], LIMIT)
        if got.rc == 3:
            raise Fail(f"refused: {tail(got.text(), 3)}")
        if got.rc or got.timed_out:
            raise Fail(f"step {step}: {explain(got)}: {tail(got.text(), 4)}")
        out = npy.load_npz_raw(result)
        carried = {i: out[o] for o, i in case["state"].items()}
        for key, raw in expected.items():
            at, name = key.split("/", 1)
            if int(at) == step:
                try:
                    compare(npy.decode(out[name]), npy.decode(raw), case["argmax"])
                except Fail as e:
                    raise Fail(f"step {step}, output {name}: {e}") from None
                except KeyError:
                    raise Fail(f"output {name} is missing, there are: {' '.join(out)}") from None


def load(env):
    """Cases, and the names of missing models."""
    models = os.path.join(env.build, "models")
    with open(os.path.join(ROOT, "test", "models.txt")) as f:
        rows = [line.split() for line in f if line.strip() and not line.startswith("#")]
    wanted = [row[2] for row in rows if "heavy" not in row]  # these have separate tests
    missing = [n for n in wanted if not os.path.exists(os.path.join(models, n))]
    if not env.python:
        return [], wanted
    out = os.path.join(models, f"cases-{len(missing)}")  # created again when a missing model is there
    env.generated(out, ["make/mkmodels.py", "models.txt", "requirements.txt"], lambda: env.script("mkmodels.py", models, out))
    with open(os.path.join(out, "cases.json")) as f:
        return json.load(f), missing


def tests(env):
    try:
        cases, missing = load(env)
    except Fail as e:
        def broken(e=e):
            raise e
        return [Test("models/data", broken)]

    def absent(name):
        raise Skip(f"{name} could not be had (see build/setup.log)")
    return [Test(f"models/{name}", lambda n=name: absent(n)) for name in missing] + [
        Test(f"models/{c['name']}-{e}", lambda c=c, e=e: check(env, c, e), cost=c["cost"])
        for c in cases for e in ENGINES if e != "interp"]  # it would take minutes
