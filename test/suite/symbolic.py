"""Models with symbolic dimensions (--max-shapes) compared with the same models compiled for the actual size, and with ONNX
Runtime, on every engine.

test/make/mksymbolic.py wrote models, inputs of several sizes and expected outputs.
On one engine, the two compilations must agree to the bit, without the passes that may change last bits.
Engines that read programs run what `ingot opt` prints without those passes; C gives the bits of the interpreter.
An input beyond the bound is refused.
"""
import json
import os
import re
from lib import npy
from lib.core import Fail, Skip, Test, explain, run, tail

LIMIT = 120
ATOL, RTOL = 1e-5, 1e-4
SYMBOLIC = ("ref", "interp", "c")


def inexact(env):
    got = run([env.ingot, "passes"], LIMIT)
    return ",".join(x.split()[0] for x in got.out.decode().splitlines() if "last bits may change" in x)


def start(cmd, what):
    got = run(cmd, LIMIT)
    if got.rc or got.timed_out:
        raise Fail(f"{what}: {explain(got)}: {tail(got.text(), 4)}")


def execute(env, case, engine, folder, bounds, exact, march="scalar"):
    what = f"{engine}-{march}-{'symbolic' if bounds else 'static'}{'-exact' if exact else ''}"
    out, model = os.path.join(folder, what + ".npz"), case["model"]
    args = [x for b in bounds for x in ("--max-shapes", b)] + (["--march", march] if march != "scalar" else [])
    given = ["--inputs", os.path.join(case["data"], "inputs.npz")]
    if exact and engine != "ref":
        program = os.path.join(folder, what + ".ing")
        skip = env.once("inexact passes", lambda: inexact(env))
        start([env.ingot, "opt", model, *given, *args, "--check", f"--skip={skip}", "--output", program], what)
        model, args = program, []
    start([env.ingot, "run", model, *given, *args, "--engine", engine, "--output", out], what)
    return npy.load_npz_raw(out)


def near(name, raw, expected):
    a, b = npy.decode(raw), npy.decode(expected)
    if (a.kind, a.shape) != (b.kind, b.shape):
        raise Fail(f"{name} is {a.kind}{list(a.shape)}, expected {b.kind}{list(b.shape)}")
    for i, (x, y) in enumerate(zip(a.data, b.data)):
        if not abs(x - y) <= ATOL + RTOL * abs(y):
            raise Fail(f"{name}: element {i} is {x!r}, expected {y!r}")


def same(one, two, what):
    for name in one:
        if one[name] != two[name]:
            a, b = npy.decode(one[name]), npy.decode(two[name])
            where = next((i for i, (x, y) in enumerate(zip(a.data, b.data)) if x != y), None)
            raise Fail(f"{name}: {what} differ: {a.kind}{list(a.shape)}, {b.kind}{list(b.shape)}" +
                       (f", element {where}: {a.data[where]!r} and {b.data[where]!r}" if where is not None else ""))


def check(env, case, engine):
    env.need_ingot()
    folder = env.scratch("symbolic", case["name"])
    expected = npy.load_npz_raw(os.path.join(case["data"], "expected.npz"))
    for bounds in ([], case["bounds"]):
        have = execute(env, case, engine, folder, bounds, False)
        if have.keys() != expected.keys():
            raise Fail(f"outputs are {' '.join(have)}, expected {' '.join(expected)}")
        for name, want in expected.items():
            near(name, have[name], want)
        if engine == "c":
            same(have, execute(env, case, "interp", folder, bounds, False), "c and interp")
    if engine != "c":
        same(*(execute(env, case, engine, folder, b, True) for b in ([], case["bounds"])), "static and symbolic")


def vectors(env, case, march):
    """On vectors, the program for any size is close to the expected results, and C gives its bits."""
    env.need_ingot()
    folder = env.scratch("symbolic", case["name"])
    expected = npy.load_npz_raw(os.path.join(case["data"], "expected.npz"))
    have = execute(env, case, "interp", folder, case["bounds"], False, march)
    for name, want in expected.items():
        near(name, have[name], want)
    if march == "native":
        same(have, execute(env, case, "c", folder, case["bounds"], False, march), "interp and c")


def too_large(env, case):
    """Bounds one below the arrays, on the last axis that is not fixed."""
    env.need_ingot()
    small = [re.sub(r"\d+$", lambda m: str(int(m[0]) - 1), b) for b in case["bounds"]]
    args = [x for b in small for x in ("--max-shapes", b)]
    for engine in ("ref", "interp"):
        got = run([env.ingot, "run", case["model"], "--inputs", os.path.join(case["data"], "inputs.npz"), "--engine", engine, *args],
                  LIMIT)
        if got.rc not in (2, 4) or got.timed_out:
            raise Fail(f"{engine}: {explain(got)}, expected a refusal: {tail(got.text(), 4)}")


def late(env, case, product):
    """A product of `compile` or `build` without the contents that determine sizes. Contents beyond the bound end the run."""
    env.need_ingot()
    folder = env.scratch("symbolic", f"{case['name']}-{product}")
    args = [x for b in case["bounds"] for x in ("--max-shapes", b)]
    made, given, out = (os.path.join(folder, x) for x in (product, "in.npz", "out.npz"))
    start([env.ingot, "build" if product == "program" else "compile", case["model"], *args, "--output", made], product)
    command = [made] if product == "program" else [env.ingot, "run", made]
    start([*command, "--inputs", os.path.join(case["data"], "inputs.npz"), "--output", out], product)
    near("y", npy.load_npz_raw(out)["y"], npy.load_npz_raw(os.path.join(case["data"], "expected.npz"))["y"])
    arrays = {k: npy.decode(v) for k, v in npy.load_npz_raw(os.path.join(case["data"], "inputs.npz")).items()}
    edges = arrays["edges"]
    npy.save_npz(given, {**arrays, "edges": npy.Array(edges.kind, edges.shape, [9] * len(edges.data))})
    got = run([*command, "--inputs", given, "--output", out], LIMIT)
    if got.rc != 4 or "out of range" not in got.text():
        raise Fail(f"index 9 in at most 9 rows: {explain(got)}: {tail(got.text(), 4)}")


def unbounded(env, model, bound):
    """Without a bound the message names the value that needs one; a bound for another value is refused."""
    env.need_ingot()
    name, first = bound.split("=")[0], [env.ingot, "compile", model, "--max-shapes", "x:9x4,edges:2x30"]
    for args, rc, text in (([], 3, f"--max-shapes '{name}=N'"), (["--max-shapes", f"{bound},y=9"], 2, "unknown dimension 'y'"),
                           (["--max-shapes", f"{bound},no_value=9"], 2, "no input has a dimension named 'no_value'")):
        got = run([*first, *args, "--output", os.path.join(env.scratch("symbolic", "unbounded"), "x.c")], LIMIT)
        if got.rc != rc or text not in got.text():
            raise Fail(f"{args}: {explain(got)}: {tail(got.text(), 4)}")


def tests(env):
    out = os.path.join(env.build, "symbolic")
    if not env.python:
        def no_python():
            raise Skip("no Python environment (see build/setup.log), so the models cannot be made")
        return [Test("symbolic/models", no_python)]
    try:
        env.generated(out, ["make/mksymbolic.py"], lambda: env.script("mksymbolic.py", out))
    except Fail as e:
        def broken(e=e):
            raise e
        return [Test("symbolic/models", broken)]
    with open(os.path.join(out, "cases.json"), encoding="ascii") as f:
        cases = json.load(f)
    found = [Test(f"symbolic/{c['name']}-{e}", lambda c=c, e=e: check(env, c, e), cost=5 if e == "c" else 1)
             for c in cases for e in SYMBOLIC if e != "c" or c["first"]]
    found += [Test(f"symbolic/{c['name']}-{p}", lambda c=c, p=p: late(env, c, p), cost=5)
              for c in cases if c["late"] for p in ("net.igb", "program") if p != "program" or c["first"]]
    unknown = next(c for c in cases if c["late"] and len(c["bounds"]) == 3)
    found += [Test("symbolic/unbounded", lambda: unbounded(env, unknown["model"], unknown["bounds"][2]))]
    found += [Test(f"symbolic/{c['name']}-{m}", lambda c=c, m=m: vectors(env, c, m), cost=5 if m == "native" else 1)
              for c in cases for m in ("avx2", "avx512", "native") if m != "native" or c["first"]]
    return found + [Test(f"symbolic/{c['name']}-too-large", lambda c=c: too_large(env, c)) for c in cases if c["first"]]
