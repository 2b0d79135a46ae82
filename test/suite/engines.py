"""All engines give the same bits: on random graphs of every operator, and on the inputs of the official suite.

NaN equals NaN: which of several a sum keeps is up to the processor.
"""
import os
import shutil
from lib import npy, pick, randop
from lib.core import ENGINES, Fail, Skip, Test, explain, run, tail

LIMIT = 60
SEEDS, COUNT = 3, 12  # graphs of each operator, results of a graph


def is_nan(a, i):
    return a.kind[0] == "f" and a.data[i] != a.data[i]


def same(x, y):
    if (x.kind, x.shape) != (y.kind, y.shape):
        return f"{x.kind}{list(x.shape)} and {y.kind}{list(y.shape)}"
    if npy.encode(x) == npy.encode(y):
        return None
    for i in range(len(x.data)):
        pair = [npy.encode(npy.Array(a.kind, (), [a.data[i]])) for a in (x, y)]
        if pair[0] != pair[1] and not (is_nan(x, i) and is_nan(y, i)):
            return f"element {i}: {x.data[i]!r} and {y.data[i]!r}"
    return None


def execute(env, model, args, folder, engine, many):
    """The outputs by name: Arrays from an archive, or, where an archive cannot hold them, bytes of .pb files."""
    out = os.path.join(folder, engine + ("" if many else ".npz"))
    if many:
        shutil.rmtree(out, ignore_errors=True)
        os.makedirs(out)
    got = run([env.ingot, "run", model, *args, "--quiet", "--engine", engine, "--output", out], LIMIT)
    if got.rc == 3:
        raise Skip(f"{engine}: refused: {tail(got.text(), 1)}")
    if got.rc or got.timed_out:
        raise Fail(f"{engine}: {explain(got)}: {tail(got.text(), 4)}")
    if not many:
        return npy.load_npz(out)
    found = {}
    for name in sorted(os.listdir(out)):
        with open(os.path.join(out, name), "rb") as f:
            found[name] = f.read()
    return found


def compare(env, model, args, folder, many):
    first = execute(env, model, args, folder, ENGINES[0], many)
    if not first:
        raise Fail("no outputs were written")
    for engine in ENGINES[1:]:
        other = execute(env, model, args, folder, engine, many)
        if first.keys() != other.keys():
            raise Fail(f"{engine} writes other outputs than {ENGINES[0]}")
        for name in first:
            where = same(first[name], other[name]) if not many else first[name] != other[name] and "the files differ"
            if where:
                raise Fail(f"{name}: {ENGINES[0]} and {engine} differ: {where}")


def random_graph(env, op, seed):
    env.need_ingot()
    folder = env.scratch("engines", f"{op}{seed}")
    g = randop.graph(f"{op}{seed}", op, COUNT)
    model = os.path.join(folder, "graph.ing")
    with open(model, "w") as f:
        f.write(g.text())
    args = []
    for name, a in g.inputs.items():
        npy.save(os.path.join(folder, name + ".npy"), a)
        args += ["--input", f"{name}=@{os.path.join(folder, name)}.npy"]
    compare(env, model, args, folder, False)


def official(env, case):
    env.need_ingot()
    compare(env, case["model"], ["--data", case["data"]], env.scratch("engines", case["name"]), True)


def tests(env):
    out = [Test(f"engines/{op}-{seed}", lambda o=op, s=seed: random_graph(env, o, s))
           for op in randop.OPS for seed in range(SEEDS)]
    return out + [Test("engines/" + c["name"], lambda c=c: official(env, c)) for c in pick.per_operator(env)]
