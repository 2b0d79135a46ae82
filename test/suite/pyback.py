"""A back end by the recipe of docs/porting.md: test/unit/back.c writes programs as Python, and numpy computes what the
interpreter computes.

Bits are equal, except for functions: where a test states a tolerance, and in models without --precise and without vectors, whose
functions (src/ir/math/mathlibs.h) exist only in C.
"""
import json
import os
import random
import re

from lib import npy, tfile, vecprog
from lib.core import ROOT, Fail, Skip, Test, must, run, tail, want

# Refusals that it states: types that numpy lacks, sizes without bound, fragments.
REFUSED = {"exec": {"prog/tiles", "ops/loop_none", "ops/loop_stop", "ops/loop_trip", "scalar/cast_narrow"}}
FUNCTIONS = {"f64": (2e-15, 0)}  # last bits of ops_f64
SINGLE = (1e-6, 1e-7)  # 3 units in the last place, through a few layers


class Jobs:
    """Programs with inputs and expected results, written as Python and run together."""

    def __init__(self, env, name):
        self.env, self.name, self.folder, self.table = env, name, env.scratch("pyback", name), []
        self.back = os.path.join(env.build, "unit", "back")
        env.need_python()
        if not os.path.exists(self.back):
            raise Skip("build/unit/back is not built")

    def path(self, name, end):
        return os.path.join(self.folder, name.replace("/", "_") + end)

    def add(self, name, inputs, tolerance=(0, 0), outputs=None):
        """The program is in path(name, ".ing"); outputs: None: those of the interpreter."""
        program, given, expected = (self.path(name, end) for end in (".ing", ".in.npz", ".out.npz"))
        npy.save_npz(given, inputs)
        if outputs is None:
            must([self.env.ingot, "run", program, "--inputs", given, "--quiet", "--output", expected], name)
        else:
            npy.save_npz(expected, outputs)
        self.table.append({"name": name, "program": program + ".py", "inputs": given, "outputs": expected, "tolerance": tolerance})

    def run(self):
        got = run([self.back, *(job["program"][:-3] for job in self.table)], 60)
        refused = {name for name in REFUSED.get(self.name, ())}
        said = set(re.findall(rf"{re.escape(self.folder)}/(\S+?)\.ing", got.text()))
        want(said == {name.replace("/", "_") for name in refused}, f"refused: {tail(got.text())}")
        path = os.path.join(self.folder, "jobs.json")
        with open(path, "w") as f:
            json.dump([job for job in self.table if job["name"] not in refused], f)
        text = self.env.script("prog_numpy.py", path)
        want(not text, tail(text))


def made_up(path):
    """Inputs of a program, at their maximum size: quarters, some of them negative."""
    r, found = random.Random(os.path.basename(path)), {}
    with open(path) as f:
        text = f.read()
        most = dict(re.findall(r"^sym (\w+) in \d+\.\.(\d+)", text, re.M))
        for name, kind, dims in re.findall(r'^buf "?([^":]+)"?: in (\w+)\[([\w,]*)\]', text, re.M):
            shape = tuple(int(most.get(d, d)) for d in dims.split(",") if d)
            some = [r.randrange(-8, 9) / 4 if kind[0] == "f" else r.randrange(2) if kind == "bool" else r.randrange(100) for _ in range(npy.count(shape))]
            found[name] = npy.Array(kind, shape, some)
    return found


def every_exec(env):
    jobs = Jobs(env, "exec")
    for t in tfile.files("exec"):
        if t.form != "graph" and "c" not in t.one("engines", "c").split():
            continue  # programs of GPU kernels
        name = t.name[len("exec/"):-2]
        path = jobs.path(name, ".ing")
        if t.form == "graph":
            must([env.ingot, "opt", t.write(env), "--quiet", "--output", path], name)
        else:
            os.replace(t.write(env), path)
        arrays = [dict(tfile.parse_array(line) for line in t.keys.get(key, [])) for key in ("input", "output")]
        jobs.add(name, arrays[0], [float(x) for x in t.one("tol", "0 0").split()[:2]], arrays[1])
    jobs.run()


def vectors(env):
    """Programs written by hand, and those that try every operator on every type that numpy has."""
    jobs = Jobs(env, "vectors")
    folder = os.path.join(ROOT, "test", "vec")
    texts = [(name[:-4], open(os.path.join(folder, name)).read()) for name in sorted(os.listdir(folder))]
    texts += [vecprog.fast("fast", 16), vecprog.fast("fused", 5)]
    texts += [p for p in vecprog.all_programs()[::2] if re.match("ops_(%s)_" % "|".join(npy.KINDS), p[0])]
    for name, text in texts:
        path = jobs.path(name, ".ing")
        with open(path, "w") as f:
            f.write(text)
        jobs.add(name, made_up(path), FUNCTIONS.get(name[4:7], (0, 0)))
    jobs.run()


MODELS = {
    "digits": ("models/digits.onnx", ["-d", "batch=1"], SINGLE),
    "digits_precise": ("models/digits.onnx", ["-d", "batch=1", "--precise"], (0, 0)),
    "digits_avx2": ("models/digits.onnx", ["-d", "batch=1", "--march", "avx2"], (0, 0)),
    "digits_sse2": ("models/digits.onnx", ["-d", "batch=2", "--march", "sse2", "--threads", "2"], (0, 0)),
    "tour_avx512": ("test/docs/tour.onnx", ["-d", "batch=3", "--march", "avx512"], (0, 0)),
}


def models(env):
    jobs = Jobs(env, "models")
    for name, (model, args, tolerance) in MODELS.items():
        path = jobs.path(name, ".ing")
        must([env.ingot, "opt", os.path.join(ROOT, model), *args, "--output", path], name)
        jobs.add(name, made_up(path), tolerance)
    jobs.run()


def tests(env):
    return [Test("pyback/exec", lambda: every_exec(env), cost=3), Test("pyback/vectors", lambda: vectors(env), cost=2),
            Test("pyback/models", lambda: models(env), cost=3)]
