"""The official ONNX tests as generated C: all with tcc, a third of them (with --all: all) in batches with gcc -O2; large ones
with gcc only.

A batch is one shared library with the C of many models; `ingot verify --engine c --library` runs them on the official data.
Every case that passes on the interpreter must pass here.
"""
import importlib.util
import os
import shutil
from lib.core import ROOT, Fail, Skip, Test, explain, run, tail

BATCH = 48
LIMIT = 60


def load_official():
    path = os.path.join(ROOT, "test", "suite", "official.py")
    spec = importlib.util.spec_from_file_location("suite_official_c", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def excused(env, case, args):
    """Returns cases that the interpreter fails too; these are not errors of the C back end."""
    other = run([env.ingot, "verify", case["model"], "--data", case["data"], *args, "--quiet"], LIMIT)
    return other.rc != 0


def judge(env, case, table, official, how, around=None, limit=LIMIT):
    """Returns None, "refused", or the failure."""
    args = official.tolerance(case["name"], table)
    got = run([env.ingot, "verify", case["model"], "--data", case["data"], "--engine", "c", "--quiet", *how, *args], limit,
              env=around, memory=8 << 30)
    if got.rc == 0:
        return None
    if not got.timed_out and got.rc > 0 and excused(env, case, args):
        return "refused"
    return f"{case['name']}: {explain(got)}: {tail(got.out.decode('utf-8', 'replace') + got.text(), 4)}"


def settle(results):
    bad = [r for r in results if r not in (None, "refused")]
    if bad:
        raise Fail(f"{len(bad)} of {len(results)}: " + "\n  ".join(bad[:6]))
    if all(r == "refused" for r in results):
        raise Skip("all cases of the batch are refused")


def with_tcc(env, cases, table, official):
    env.need_ingot()
    if not shutil.which("tcc"):
        raise Skip("tcc is not installed")
    settle([judge(env, c, table, official, [], {"CC": "tcc"}) for c in cases])


def with_gcc(env, number, cases, table, official):
    env.need_ingot()
    if not shutil.which("gcc"):
        raise Skip("gcc is not installed")
    folder = env.scratch("compiled", str(number))
    sources, ready, results = [], [], []
    for i, case in enumerate(cases):
        path = os.path.join(folder, f"m{i}.c")
        got = run([env.ingot, case["model"], "--data", case["data"], "--name", f"m{i}", "--caller", "--no-selftest", "--quiet",
                   "-o", path], LIMIT)
        if got.rc == 0:
            sources.append(path)
            ready.append((case, f"m{i}"))
        elif got.rc > 0 and excused(env, case, official.tolerance(case["name"], table)):
            results.append("refused")
        else:
            results.append(f"{case['name']}: compile: {explain(got)}: {tail(got.text(), 4)}")
    library = os.path.join(folder, "batch.so")
    if sources:
        got = run(["gcc", "-std=c99", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fPIC", "-shared", "-o", library, *sources],
                  600, merge=True)
        if got.rc:
            raise Fail(f"gcc -O2: {tail(got.out.decode('utf-8', 'replace'))}")
    for case, name in ready:
        results.append(judge(env, case, table, official, ["--library", library, "--name", name]))
    for path in sources:
        os.unlink(path)
    settle(results)


def large(env, case, table, official):
    env.need_ingot()
    settle([judge(env, case, table, official, [], {"CC": "gcc"}, 600)])


def tests(env):
    official = load_official()
    if not env.data:
        return []
    try:
        cases, _ = official.index(env)
    except (Fail, Skip):
        return []  # suite `official` reports it
    table = official.rules()
    some = [c for c in cases if c["kind"] != "light"]
    batches, fewer = ([x[i:i + BATCH] for i in range(0, len(x), BATCH)] for x in (some, env.share(some, 3, "gcc")))
    out = [Test(f"compiled/tcc-{k:02}", lambda b=b: with_tcc(env, b, table, official), cost=4) for k, b in enumerate(batches)]
    out += [Test(f"compiled/gcc-{k:02}", lambda k=k, b=b: with_gcc(env, k, b, table, official), cost=8) for k, b in enumerate(fewer)]
    return out + [Test(f"compiled/{c['name']}", lambda c=c: large(env, c, table, official), cost=official.COST.get(c["name"], 10))
                  for c in cases if c["kind"] == "light"]
