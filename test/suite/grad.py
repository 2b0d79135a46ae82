"""Gradients compared with central differences in double: every operator, and whole networks.

build/unit/grad (test/unit/grad.c) reads graphs as text and prints the largest relative error of each; 1e-5 is allowed.
"""
import os
import re
import tempfile
from lib import gradcases, npy
from lib.core import ROOT, Fail, Skip, Test, explain, run, tail

PROGRAM = os.path.join(ROOT, "build", "unit", "grad")
LIMIT = 120
NETS = ("mlp", "lenet", "resnet18", "mobilenet_v2", "lstm", "bilstm", "gru", "rnn", "bert", "gpt", "unet", "vgg", "densenet", "squeezenet", "inception",
        "resnext", "efficientnet", "convnext", "vit", "mixer", "tcn", "generator", "autoencoder", "normed")


def check(files, *options):
    if not os.path.exists(PROGRAM):
        raise Skip("build/unit is not built")
    got = run([PROGRAM, *options, *files], LIMIT, cwd=ROOT, merge=True)
    if got.rc or got.timed_out:
        wrong = [line for line in got.out.decode("utf-8", "replace").splitlines() if "WRONG" in line]
        raise Fail("\n".join(wrong) or f"{explain(got)}: {tail(got.out.decode('utf-8', 'replace'))}")
    return got.out.decode()


def table():
    with open(os.path.join(ROOT, "src", "ir", "ops.def"), encoding="utf-8") as f:
        return f.read()


def operators(recompute):
    texts = gradcases.cases(table())
    known = set(re.findall(r"^(?:SC|OP)\((\w+),", table(), re.M))
    missing = known - gradcases.operators(texts.values())
    if missing or len(known) < 90:
        raise Fail(f"no case for {sorted(missing)}; {len(known)} operators")
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name, text in sorted(texts.items()):
            files.append(os.path.join(folder, f"{name}.ing"))
            with open(files[-1], "w", encoding="utf-8") as f:
                f.write(text)
        check(files, *(["-r"] if recompute else []))


def network(env, name, *options):
    """Weights and inputs of a network in double: the text of its graph with every f32 replaced."""
    folder = os.path.join(env.build, "grad")
    env.generated(folder, ["make/mkgrad.py", "requirements.txt"], lambda: env.script("mkgrad.py", folder))
    got = run([env.need_ingot(), "opt", os.path.join(folder, name + ".onnx"), "--stop=none", "--constants=all"], LIMIT)
    if got.rc:
        raise Fail(f"opt: {explain(got)}: {tail(got.text())}")
    text = got.out.decode().replace("f32", "f64").replace('"ids"', '"ids@0..10"')
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, name + ".ing")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        check([path], "-w", *options)



def listed(env):
    """Gradients with respect to a value do not change if another value lies between it and y."""
    env.need_ingot()
    path = os.path.join(env.scratch("grad", "listed"), "net.ing")
    with open(path, "w", encoding="utf-8") as f:
        f.write('''graph (%x "x": f32[2]) {
  %h "h": f32[2] = mul(%x, %x)
  %p "p": f32[2] = mul(%h, %x)
  return %p "y"
}
''')
    for spec in ("y:x", "y:x,h", "y:h,x"):
        out = path[:-4] + ".npz"
        got = run([env.ingot, "run", path, "--grad", spec, "--input", "x=[2,3]", "-o", out], 20)
        if got.rc:
            raise Fail(f"{spec}: {explain(got)}: {tail(got.text())}")
        found = npy.load_npz(out)
        if list(found["x.grad"].data) != [12, 27] or ("h" in spec and list(found["h.grad"].data) != [2, 3]):
            raise Fail(f"{spec}: {found['x.grad'].data}, expected 12, 27")


def tests(env):
    nets = [Test(f"grad/{name}", lambda n=name: network(env, n), cost=2) for name in NETS]
    again = [Test(f"grad/{name}-recompute", lambda n=name: network(env, n, "-r"), cost=2) for name in ("lstm", "gru")]
    return nets + again + [Test("grad/listed", lambda: listed(env), cost=1), Test("grad/operators", lambda: operators(False), cost=2), Test("grad/operators-recompute", lambda: operators(True), cost=2)]
