"""The memory plan: every program of test/exec, planned, on engine watch, which checks whose data are in the arena.

A graph goes through all passes.
A program is planned first; the text with its plan is parsed and run, and must give the same results as without.
`ingot inspect` prints the figures, and the arena is close to the lower bound.
"""
import copy
import json
import os

from lib import npy, tfile
from lib.core import ROOT, Fail, Test, explain, run, tail

CHECK = "*"

LIMIT = 20


def watched(env, t):
    t = copy.copy(t)
    engines = t.keys.get("engines", ["ref interp"])[0].split()
    t.keys = dict(t.keys, engines=["watch"])
    t.name = os.path.join("plan", t.name)
    if "interp" not in engines:
        return
    if t.form == "prog":
        env.need_ingot()
        got = run([env.ingot, "opt", "--check", "--start=plan", "--constants=all", t.write(env)], LIMIT)
        if got.rc:
            raise Fail(f"{explain(got)}: {tail(got.text())}")
        t.body = got.out.decode().strip("\n")
    tfile.execute(env, t)


def figures(env):
    env.need_ingot()
    got = run([env.ingot, "inspect", os.path.join(ROOT, "models", "digits.onnx"), "--json"], LIMIT)
    if got.rc:
        raise Fail(f"{explain(got)}: {tail(got.text())}")
    m = json.loads(got.out)["memory"]
    if not m["planned"] or m["arena"] % 64 or not m["lower_bound"] <= m["arena"] <= 1.01 * m["lower_bound"] <= m["naive"]:
        raise Fail(f"memory of the digit model: {m}")
    if sum(x["bytes"] for x in m["peak"]) != m["lower_bound"]:
        raise Fail(f"the peak does not add up to the lower bound: {m}")
    if m["weights"] < 10000 or not 3 <= m["kernels"] <= m["groups"] or m["buffers"] < 3:
        raise Fail(f"weights, kernels: {m}")
    text = run([env.ingot, "inspect", os.path.join(ROOT, "models", "digits.onnx")], LIMIT).out.decode()
    for said in (f"arena {m['arena']} bytes, at least {m['lower_bound']}; {m['naive']} without reuse, {m['reuse']:.1f} times",
                 f"stack {m['stack']} bytes", f"groups {m['groups']}, distinct kernels {m['kernels']}", f"weights {m['weights']} bytes",
                 "multiply-adds ", f"  {m['peak'][0]['name']}: f32"):
        if said not in text:
            raise Fail(f"inspect does not say '{said}'")
    got = run([env.ingot, os.path.join(ROOT, "models", "digits.onnx"), "--quiet"], LIMIT).out.decode()
    for macro, value in (("ARENA", m["arena"]), ("STACK", m["stack"])):
        if f"_{macro}_BYTES {value}\n" not in got:
            raise Fail(f"the C file has another {macro}_BYTES than {value}")


def spoiled(env):
    """The engine notices a read of another buffer's data that no check of the text can see."""
    env.need_ingot()
    folder = env.scratch("plan")
    path = os.path.join(folder, "spoiled.ing")
    with open(path, "w", encoding="utf-8") as f:
        f.write("prog p\narena 128\nbuf y: out f32[32]\nbuf a: temp f32[32] at 0\nbuf b: temp f32[32] at 0\n"
                "let k: i64 = 0\nwhile k < 2 {\n"
                'kernel "a" {\nif k == 0 {\nfor i in 0..32 {\na[i] = 1.0\n}\n}\n}\n'
                'kernel "y" {\nfor i in 0..32 {\ny[i] = a[i]\n}\n}\n'
                'kernel "b" {\nfor i in 0..32 {\nb[i] = 2.0\n}\n}\n'
                'kernel "z" {\nfor i in 0..32 {\ny[i] = y[i] + b[i]\n}\n}\nset k = k + 1\n}\n')
    if run([env.ingot, "run", path, "--engine", "interp", "--output", path + ".npz"], LIMIT).rc:
        raise Fail("the program does not run on interp")
    got = run([env.ingot, "run", path, "--engine", "watch"], LIMIT)
    if got.rc != 5 or "data of another buffer" not in got.text():
        raise Fail(f"watch: {explain(got)}: {tail(got.text())}")
    planned = run([env.ingot, "opt", "--start=plan", "--constants=all", path], LIMIT).out
    with open(path, "wb") as f:
        f.write(planned)
    got = run([env.ingot, "run", path, "--engine", "watch", "--output", path + ".npz"], LIMIT)
    if got.rc:
        raise Fail(f"planned anew: {explain(got)}: {tail(got.text())}")
    if npy.load_npz(path + ".npz")["y"].data != [3.0] * 32:
        raise Fail("planned anew: wrong result")


def tests(env):
    return [Test("plan/figures", lambda: figures(env)), Test("plan/spoiled", lambda: spoiled(env))] + \
        [Test("plan/" + t.name[:-2], lambda t=t: watched(env, t)) for t in tfile.files("exec")]
