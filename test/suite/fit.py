"""`ingot train`: weights equal the same formulas written by hand, on every engine; metrics; written files; interrupted trainings
that continue to the bit; refusals.

Only the weights of a written file differ from the original, and ONNX Runtime runs it.
"""
import json
import math
import os
import random
import re
import signal
import struct
import subprocess
import time

from lib import npy, onnxfile
from lib.core import ROOT, Fail, Test, explain, must, need, run, tail, want
from suite.train import HIDDEN, IN, N, OPTIMIZERS, OUT, RATE, Net, clipped

DIGITS = os.path.join(ROOT, "models", "digits.onnx")
IMAGES = os.path.join(ROOT, "models", "digits.npz")
JOBS = 2  # of test/run
SHAPES = {"w1": (IN, HIDDEN), "b1": (HIDDEN,), "w2": (HIDDEN, OUT), "b2": (OUT,)}


def model(net, path, batch="n"):
    g = onnxfile.Graph()
    w = {k: g.const(SHAPES[k], v, name=k) for k, v in net.w.items()}
    h = g.node("Tanh", [g.node("Add", [g.node("MatMul", [g.input([batch, IN], name="x"), w["w1"]]), w["b1"]])])
    y = g.node("Add", [g.node("MatMul", [h, w["w2"]]), w["b2"]], ["y"])
    g.output(g.node("Identity", [g.const([2], [1.0, 2.0], name="apart")], ["z"]), [2])  # no gradient reaches it
    g.output(y, [batch, OUT])
    with open(path, "wb") as f:
        f.write(onnxfile.model(g))


def examples(path, x, label, kind, label_shape):
    npy.save_npz(path, {"x": npy.Array("f64", (len(x) // IN, IN), x), "label": npy.Array(kind, label_shape, label)})


def weights_of(old, new, net):
    """Returns the weights of the new file; everything else must equal the old one."""
    with open(old, "rb") as f:
        was = bytearray(f.read())
    with open(new, "rb") as f:
        now = bytearray(f.read())
    out = {}
    for name, values in net.items():
        raw = struct.pack(f"<{len(values)}f", *values)
        at = bytes(was).index(raw)
        out[name] = struct.unpack(f"<{len(values)}f", now[at:at + len(raw)])
        was[at:at + len(raw)] = now[at:at + len(raw)]
    want(was == now, "more than weights differs in the file")
    return out


def train(env, words, folder, rc=0, has=""):
    got = run([env.need_ingot(), "train", *words], 120, cwd=folder)
    if got.rc != rc or has not in got.text():
        raise Fail(f"{' '.join(words)}: {explain(got)}, expected {rc} with {has!r}: {tail(got.text())}")
    return got


def near(found, net):
    for k, row in net.w.items():
        for a, b in zip(found[k], row):
            want(abs(a - b) <= 2e-5 * max(1, abs(b)), f"{k}: {a}, expected {b}")


def formulas(env, optimizer, loss="cross_entropy", engine="vm", more=(), update=None):
    """All examples in one batch, so their order does not matter: after 5 epochs, the weights are those of 5 steps by hand, and
    differ from those without the optimizer."""
    folder = env.scratch("fit", f"{optimizer}-{loss}-{engine}-{len(more)}")
    old, new = os.path.join(folder, "net.onnx"), os.path.join(folder, "new.onnx")
    net = Net(loss)
    model(net, old)
    first = {k: list(v) for k, v in net.w.items()}
    kind, shape = ("u8", (N,)) if loss == "cross_entropy" else ("f32", (N, OUT))
    examples(os.path.join(folder, "x.npz"), net.x, net.label, kind, shape)
    words = ["net.onnx", "--data", "x.npz", "-o", "new.onnx", "--batch", "6", "--epochs", "5", "--lr", str(RATE), "--optimizer", optimizer, "--loss", loss, "--engine", engine, "--json"]
    if "output=y" not in more:
        words += ["--train", "output=y"]
    told = json.loads(train(env, [*words, *more], folder).out)
    losses = [net.step(update or OPTIMIZERS[optimizer]) for _ in range(5)]
    for row, x in zip(told["epochs"], losses):
        want(abs(row["train"]["loss"] - x) < 1e-5, f"{row}, expected a loss of {x}")
    near(weights_of(old, new, first), net)


def leftover(env, engine):
    """A partial batch has its true size: of 7 equal examples, the second step, with 3, equals the first, with 4. Metrics are
    means over examples."""
    folder = env.scratch("fit", "left-" + engine)
    old, new = os.path.join(folder, "net.onnx"), os.path.join(folder, "new.onnx")
    net = Net("cross_entropy")
    model(net, old)
    first = {k: list(v) for k, v in net.w.items()}
    net.x, net.label = net.x[:IN] * N, net.label[:1] * N
    examples(os.path.join(folder, "x.npz"), net.x[:IN] * 7, net.label[:1] * 7, "i64", (7,))
    train(env, ["net.onnx", "--data", "x.npz", "-o", "new.onnx", "--batch", "4", "--lr", str(RATE), "--optimizer", "adam", "--engine", engine, "--train", "output=y"], folder)
    for _ in range(2):
        net.step(OPTIMIZERS["adam"])
    near(weights_of(old, new, first), net)


def schedules(env):
    """Learning rates of the last step of each epoch."""
    folder = env.scratch("fit", "schedules")
    net = Net("cross_entropy")
    model(net, os.path.join(folder, "net.onnx"))
    examples(os.path.join(folder, "x.npz"), net.x, net.label, "i64", (N,))
    for how, rates in (("step:2,0.5", [1, 1, .5, .5, .25, .25]), ("step", [1, 1, .1, .1, .01, .01]), ("exp:0.5", [.5 ** i for i in range(6)]),
                       ("cosine", [(1 + math.cos(math.pi * (2 * i + 1) / 12)) / 2 for i in range(6)]), ("cosine:0.5", [.5 + (1 + math.cos(math.pi * (2 * i + 1) / 12)) / 4 for i in range(6)])):
        told = json.loads(train(env, ["net.onnx", "--data", "x.npz", "-o", "new.onnx", "--batch", "4", "--lr", "1", "--epochs", "6", "--schedule", how, "--train", "output=y",
                                      "--clip", "0.001", "--engine", "vm", "--json"], folder).out)
        found = [r["rate"] for r in told["epochs"]]
        want(all(abs(a - b) < 1e-6 for a, b in zip(found, rates)), f"{how}: {found}, expected {rates}")


def scores(env):
    """The validation figures of the last epoch hold for the written file, also in ONNX Runtime: loss, accuracy, precision,
    recall, F1."""
    folder = env.scratch("fit", "scores")
    arrays = npy.load_npz(IMAGES)
    worse = npy.Array("u8", arrays["label"].shape, [(k + i % 2) % 10 for i, k in enumerate(arrays["label"].data)])  # else all examples would be classified correctly
    npy.save_npz(os.path.join(folder, "x.npz"), {"image": arrays["image"], "label": worse})
    told = json.loads(train(env, [DIGITS, "--data", "x.npz", "--validate", IMAGES, "-o", "new.onnx", "--batch", "32", "--epochs", "2", "--lr", "0.02", "--optimizer", "momentum",
                                  "--seed", "5", "--engine", "vm", "--json"], folder).out)
    npy.save_npz(os.path.join(folder, "in.npz"), {"image": arrays["image"]})
    ort = ["--engine", "onnxruntime", "--python", env.need_python()]
    must([env.ingot, "run", os.path.join(folder, "new.onnx"), "--inputs", os.path.join(folder, "in.npz"), "-o", os.path.join(folder, "out.npz"), *ort], "ONNX Runtime")
    p = npy.load_npz(os.path.join(folder, "out.npz"))["probability"].data
    label = arrays["label"].data
    said = [max(range(10), key=lambda k, i=i: p[10 * i + k]) for i in range(len(label))]
    rows = []
    for k in sorted(set(label) | set(said)):
        hit, n, m = sum(a == b == k for a, b in zip(said, label)), said.count(k), label.count(k)
        a, b = hit / n if n else 0, hit / m if m else 0
        rows.append((a, b, 2 * a * b / (a + b) if a + b else 0))
    expected = {"loss": -sum(math.log(p[10 * i + k]) for i, k in enumerate(label)) / len(label), "accuracy": 100 * sum(a == b for a, b in zip(said, label)) / len(label),
                "precision": 100 * sum(r[0] for r in rows) / len(rows), "recall": 100 * sum(r[1] for r in rows) / len(rows), "f1": 100 * sum(r[2] for r in rows) / len(rows)}
    for k, x in expected.items():
        found = told["epochs"][-1]["validate"][k]
        want(abs(found - x) < 1e-4 * max(1, x), f"{k}: told {found}, {x} in ONNX Runtime")
    want(set(label) != set(said) or min(r[2] for r in rows) < 1, "everything is right: nothing is compared")


def classifier(path, mode=None):
    """The network of models/digits.onnx with random weights. mode: exported for training, by an attribute and an input (17), or
    by further outputs (9)."""
    r, g = random.Random(6), onnxfile.Graph()

    def weight(*dims):
        count, fan = math.prod(dims), math.prod(dims[1:])
        return g.const(dims, [r.gauss(0, (2 / fan) ** 0.5) for _ in range(count)])

    def block(x, cin, cout):
        y = g.node("Conv", [x, weight(cout, cin, 3, 3)], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        same = [g.const([cout], [v] * cout) for v in (1.0, 0.0, 0.0, 1.0)]
        y = g.node("BatchNormalization", [y, *same], 3 if mode else 1, **({"training_mode": 1} if mode == 17 else {}))
        return g.node("Relu", [y[0] if mode else y])

    x = g.node("MaxPool", [block(block(g.input(["n", 1, 8, 8], name="image"), 1, 8), 8, 16)], kernel_shape=[2, 2], strides=[2, 2])
    x = g.node("Flatten", [x])
    if mode == 17:
        x = g.node("Dropout", [x, g.const([], [0.25]), g.const([], [True], onnxfile.BOOL, "yes")])
    g.output(g.node("Gemm", [x, weight(10, 256), g.const([10], [0.0] * 10)], ["y"], transB=1), ["n", 10])
    if mode:
        g.output("v8", [8])  # a running mean
    with open(path, "wb") as f:
        f.write(onnxfile.model(g, mode or 17))


def digits(env):
    """From random weights to 98.5 % of held-out images in less than 20 s of CPU time; with learning rate 0 it learns nothing."""
    folder = env.scratch("fit", "digits")
    classifier(os.path.join(folder, "net.onnx"))
    images = [os.path.join(ROOT, "models", f"digits_{part}.npz") for part in ("train", "held")]
    words = ["net.onnx", "--data", images[0], "--validate", images[1], "-o", "new.onnx", "--engine", "vm", "--march", "native", "--json"]
    before = os.times()
    told = json.loads(train(env, [*words, "--epochs", "8", "--lr", "0.005", "--schedule", "cosine"], folder).out)
    after = os.times()
    found = [row["validate"]["accuracy"] for row in told["epochs"]]
    want(found[-1] >= 98.5, f"accuracies of {found}")
    losses = [row["train"]["loss"] for row in told["epochs"]]
    want(losses[-1] < 0.1 * losses[0], f"losses of {losses}")
    spent = after.children_user - before.children_user
    want(spent < 20 * JOBS, f"{spent:.0f} s of processors")  # other tests run at the same time
    told = json.loads(train(env, [*words, "--epochs", "1", "--lr", "1e-30"], folder).out)
    want(told["epochs"][0]["validate"]["accuracy"] < 50, f"without a rate: {told}")


AT_ONE = """
import sys, numpy, onnxruntime
s, held = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"]), numpy.load(sys.argv[2])
rows = [s.run(None, {"image": x[None]}) for x in held["image"]]
print(100 * sum(int(y[0].argmax() == k) for y, k in zip(rows, held["label"])) / len(rows), len(s.get_outputs()))
"""


def modes(env, mode):
    """A model exported for training is written for inference: the validation figures hold in ONNX Runtime, one example at a
    time. A running mean that is an output stays one."""
    folder = env.scratch("fit", f"mode-{mode}")
    net, new = os.path.join(folder, "net.onnx"), os.path.join(folder, "new.onnx")
    classifier(net, mode)
    images = [os.path.join(ROOT, "models", f"digits_{part}.npz") for part in ("train", "held")]
    got = train(env, ["net.onnx", "--data", images[0], "--validate", images[1], "-o", "new.onnx", "--engine", "vm", "--march", "native", "--json", "--epochs", "2", "--lr", "0.005"], folder, 0, "is written for inference")
    said = json.loads(got.out)["epochs"][-1]["validate"]["accuracy"]
    found, outputs = must([env.need_python(), "-c", AT_ONE, new, images[1]], "ONNX Runtime").split()
    want(abs(float(found) - said) < 0.2 and said > 90 and outputs == "2", f"validation says {said} %, ONNX Runtime {found} % and {outputs} outputs")
    again = ["run", "-d", "n=2"]
    for path, warns in ((net, 1), (new, 0)):
        got = run([env.ingot, *again, path], 60)
        want(got.rc == 0 and got.text().count("is in training mode") == warns, f"{path}: {explain(got)}, expected {warns} warnings: {tail(got.text())}")


def inner_modes(env):
    """Dropout inside functions and sub-graphs: supported if its mode is a constant false in an outer scope, or an argument of
    the call; else refused."""
    folder = env.scratch("fit", "inner")
    npy.save_npz(os.path.join(folder, "x.npz"), {"x": npy.Array("f32", (4, 4), [0.5, 1, 2, 3] * 4), "label": npy.Array("i64", (4,), [0, 1, 2, 3])})

    def flag(on):
        return onnxfile.tensor("", [], [on], onnxfile.BOOL)

    for place in ("body", "argument", "absent", "branch", "outer"):
        for on in (False, True) if place != "absent" else (False,):
            g, functions = onnxfile.Graph(), []
            x = g.node("MatMul", [g.input(["n", 4], name="x"), g.weight(4, 4)])
            inner = onnxfile.Graph("i_")
            ratio = inner.node("Constant", [], value=onnxfile.tensor("", [], [0.0]))
            mode = "on" if place in ("argument", "absent", "outer") else inner.node("Constant", [], value=flag(on))
            if place in ("branch", "outer"):
                if place == "outer":
                    g.const([], [on], onnxfile.BOOL, "on")
                inner.output(inner.node("Dropout", [x, ratio, mode]), ["n", 4])
                other = onnxfile.Graph("o_")
                other.output(other.node("Neg", [x]), ["n", 4])
                y = g.node("If", [g.const([], [True], onnxfile.BOOL)], then_branch=inner, else_branch=other)
            else:
                inner.node("Dropout", ["a", ratio, mode], ["b"])
                nodes = [part[2:] if part[1] < 128 else part[3:] for part in inner.parts]  # without field tag and length
                functions = [onnxfile.function("f", "drop", ["a", "on"], ["b"], nodes)]
                y = g.node("drop", [x, g.const([], [on], onnxfile.BOOL)] if place == "argument" else [x], domain="f")
            g.output(g.node("Add", [y, g.weight(4)], ["y"]), ["n", 4])
            name = f"{place}{int(on)}"
            with open(os.path.join(folder, name + ".onnx"), "wb") as f:
                f.write(onnxfile.model(g, functions=functions))
            train(env, [name + ".onnx", "--data", "x.npz", "-o", name + "-new.onnx", "--engine", "vm"], folder, 3 if on else 0, "inside a sub-graph or function" if on else "")


def quantized(env):
    """int8 models of both forms are refused, even if other weights are trainable: scales are not weights."""
    folder = env.scratch("fit", "quantized")
    for name in ("qdq", "qlinear"):
        g = onnxfile.Graph()
        scale, zero = g.const([], [0.1]), g.const([], [3], onnxfile.UINT8)
        w, many = g.const([4, 4], list(range(16)), onnxfile.UINT8), g.const([4], [0.1, 0.2, 0.3, 0.4])
        q = g.node("QuantizeLinear", [g.input(["n", 4], name="x"), scale, zero])
        if name == "qdq":
            y = g.node("MatMul", [g.node("DequantizeLinear", [q, scale, zero]), g.node("DequantizeLinear", [w, many, g.const([4], [0] * 4, onnxfile.UINT8)])])
        else:
            y = g.node("DequantizeLinear", [g.node("QLinearMatMul", [q, scale, zero, w, scale, zero, scale, zero]), scale, zero])
        g.output(g.node("Add", [y, g.const([4], [0.0] * 4)], ["y"]), ["n", 4])
        path = os.path.join(folder, name + ".onnx")
        with open(path, "wb") as f:
            f.write(onnxfile.model(g))
        npy.save_npz(os.path.join(folder, "x.npz"), {"x": npy.Array("f32", (4, 4), [0.5] * 16), "label": npy.Array("i64", (4,), [0, 1, 2, 3])})
        train(env, [path, "--data", "x.npz", "-o", "new.onnx", "--engine", "vm"], folder, 3, "ingot quantize")
        want(not os.path.exists(os.path.join(folder, "new.onnx")), "a refused training left a file")


WORDS = [DIGITS, "--data", IMAGES, "--validate", IMAGES, "--batch", "16", "--epochs", "3", "--optimizer", "adam", "--schedule", "cosine", "--clip", "1", "--seed", "3", "--engine", "vm"]


def patience(env):
    """Wrong validation labels make the loss rise: training ends N epochs later, with the weights of the best epoch, equal to
    those of a training that ends there."""
    folder = env.scratch("fit", "patience")
    arrays = npy.load_npz(IMAGES)
    noisy = npy.Array("u8", arrays["label"].shape, [(k + (i % 3 == 0)) % 10 for i, k in enumerate(arrays["label"].data)])
    npy.save_npz(os.path.join(folder, "noisy.npz"), {"image": arrays["image"], "label": noisy})
    words = [DIGITS, "--data", "noisy.npz", "--validate", IMAGES, "--batch", "64", "--lr", "0.02", "--optimizer", "momentum", "--engine", "vm", "--json"]
    told = json.loads(train(env, [*words, "--epochs", "40", "--patience", "2", "-o", "early.onnx"], folder).out)
    losses = [e["validate"]["loss"] for e in told["epochs"]]
    best = losses.index(min(losses)) + 1
    want(told["best"] == best and len(losses) == best + 2 and len(losses) < 40, f"best {told['best']} of {losses}")
    train(env, [*words, "--epochs", str(best), "-o", "exact.onnx"], folder)
    with open(os.path.join(folder, "early.onnx"), "rb") as a, open(os.path.join(folder, "exact.onnx"), "rb") as b:
        want(a.read() == b.read(), "the weights are not those of the best epoch")
    train(env, [DIGITS, "--data", IMAGES, "--patience", "2", "-o", "x.onnx", "--engine", "vm"], folder, 2, "add --validate")


def killed(env, name="killed", more=()):
    """Trainings killed at random points end with the bits of an uninterrupted one, and the same table."""
    folder = env.scratch("fit", name)
    words = [*WORDS, *more]
    whole = train(env, [*words, "-o", "whole.onnx"], folder)
    with open(os.path.join(folder, "whole.onnx"), "rb") as f:
        bits = f.read()
    r, kills = random.Random(4), 0
    for k in range(3):
        out = os.path.join(folder, f"k{k}.onnx")
        cmd = [env.ingot, "train", *words, "-o", out, "--checkpoint-every", "0"]
        for _ in range(2):
            p = subprocess.Popen(cmd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)
            limit = time.monotonic() + 60
            size = os.stat(out + ".checkpoint").st_mtime_ns if os.path.exists(out + ".checkpoint") else 0
            while p.poll() is None and time.monotonic() < limit:
                if os.path.exists(out + ".checkpoint") and os.stat(out + ".checkpoint").st_mtime_ns != size:
                    break
                time.sleep(0.002)
            time.sleep(r.random() * 0.2)
            if p.poll() is None:
                p.send_signal(signal.SIGKILL)
                kills += 1
            p.wait()
        got = train(env, [*words, "-o", out, "--checkpoint-every", "0", "--engine", "vm"], folder)
        with open(out, "rb") as f:
            want(f.read() == bits, f"killed training {k} ends with other weights")
        want(got.out == whole.out, f"another table: {got.out.decode()}, expected {whole.out.decode()}")
        want(not os.path.exists(out + ".checkpoint"), "the checkpoint is left behind")
    want(kills >= 3, f"only {kills} were killed before they had ended")


def interrupted(env):
    """Ctrl-C prints what is saved; the same command prints that it resumes. Without a checkpoint nothing is saved."""
    folder = env.scratch("fit", "interrupted")
    for name in os.listdir(folder):
        os.remove(os.path.join(folder, name))
    cmd = [env.ingot, "train", *WORDS, "-o", "x.onnx", "--epochs", "2000", "--checkpoint-every"]
    for every, said in (("1000", "before the first checkpoint: nothing is kept"), ("0", "x.onnx.checkpoint keeps the training"), ("0", "keeps the training")):
        resumes = os.path.exists(os.path.join(folder, "x.onnx.checkpoint"))
        p = subprocess.Popen([*cmd, every], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder,
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # a background process ignores SIGINT
        p.stdout.readline()
        p.stdout.readline()
        p.send_signal(signal.SIGINT)
        text = p.communicate(timeout=60)[1].decode()
        want(p.returncode == -signal.SIGINT and said in text and "Traceback" not in text, f"{p.returncode}: {text}")
        want(text.startswith("ingot: resuming from x.onnx.checkpoint: step ") == resumes, f"resumes: {resumes}, said {text}")


def resumed(env):
    """A training that resumes inside an epoch with a partial batch counts its classes too: every checkpoint leads to the same
    table."""
    folder = env.scratch("fit", "resumed")
    arrays = npy.load_npz(IMAGES)
    wrong = npy.Array("u8", arrays["label"].shape, [(k + i % 2) % 10 for i, k in enumerate(arrays["label"].data)])  # else all examples would be classified correctly
    npy.save_npz(os.path.join(folder, "data.npz"), {"image": arrays["image"], "label": wrong})
    words = [DIGITS, "--data", "data.npz", "--batch", "96", "--accumulate", "2", "--epochs", "1", "--lr", "0.5", "--optimizer", "sgd", "--engine", "vm"]
    whole = train(env, [*words, "-o", "whole.onnx"], folder)
    kept, out = os.path.join(folder, "kept"), os.path.join(folder, "x.onnx.checkpoint")
    for path in (kept, out):
        if os.path.exists(path):
            os.remove(path)
    p = subprocess.Popen([env.ingot, "train", *words, "-o", "x.onnx", "--checkpoint-every", "0"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)
    while p.poll() is None:  # the only checkpoint inside the epoch, after 96 examples
        if os.path.exists(out):
            os.link(out, kept)
            break
    p.kill()
    p.wait()
    want(os.path.exists(kept), "there was no checkpoint")
    if os.path.exists(out):
        os.remove(out)
    os.rename(kept, out)
    got = train(env, [*words, "-o", "x.onnx", "--checkpoint-every", "0"], folder)
    want("step 2" in got.text() and got.out == whole.out, f"{got.text()}: another table: {got.out.decode()}, expected {whole.out.decode()}")


def other(env):
    """The checkpoint of another training is refused, with the difference."""
    folder = env.scratch("fit", "other")
    p = subprocess.Popen([env.need_ingot(), "train", *WORDS, "--epochs", "500", "-o", "x.onnx", "--checkpoint-every", "0"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)
    limit = time.monotonic() + 60
    while not os.path.exists(os.path.join(folder, "x.onnx.checkpoint")) and time.monotonic() < limit:
        time.sleep(0.01)
    p.kill()
    p.wait()
    base = [*WORDS, "-o", "x.onnx"]
    train(env, base, folder, 4, "'--epochs 500', this one '--epochs 3'")
    train(env, [*base, "--epochs", "500", "--lr", "0.5"], folder, 4, "'--lr 0.001")
    train(env, [*base, "--epochs", "500", "--optimizer", "sgd"], folder, 4, "optimizer=sgd")
    with open(os.path.join(folder, "x.onnx.checkpoint"), "r+b") as f:
        f.truncate(1000)
    train(env, [*base, "--epochs", "500"], folder, 4, "x.onnx.checkpoint")
    os.remove(os.path.join(folder, "x.onnx.checkpoint"))


def refused(env):
    folder = env.scratch("fit", "refused")
    for name in ("new.onnx", "new.onnx.checkpoint"):
        if os.path.exists(os.path.join(folder, name)):
            os.remove(os.path.join(folder, name))
    net = Net("cross_entropy")
    model(net, os.path.join(folder, "net.onnx"))
    model(net, os.path.join(folder, "four.onnx"), 4)
    examples(os.path.join(folder, "x.npz"), net.x, net.label, "i64", (N,))
    examples(os.path.join(folder, "bad.npz"), net.x, [OUT] * N, "i64", (N,))
    examples(os.path.join(folder, "last.npz"), net.x, [*net.label[:-1], -1], "i64", (N,))
    examples(os.path.join(folder, "far.npz"), net.x, [3e38] * (N * OUT), "f32", (N, OUT))
    examples(os.path.join(folder, "mse.npz"), net.x, [0.5] * (N * OUT), "f32", (N, OUT))
    examples(os.path.join(folder, "long.npz"), net.x, net.label * 2, "i64", (2 * N,))
    base = ["net.onnx", "--data", "x.npz", "-o", "new.onnx", "--engine", "vm", "--train", "output=y"]
    train(env, ["net.onnx", "--data", "x.npz"], folder, 2, "--output is missing")
    train(env, ["net.onnx", "-o", "new.onnx"], folder, 2, "--data is missing")
    for words, code, has in ((["--loss", "mean"], 2, "no loss 'mean'"), (["--optimizer", "adamx"], 2, "no optimizer 'adamx'"), (["--schedule", "step:0"], 2, "expected step"),
                             (["--schedule", "cosin"], 2, "--schedule: unknown schedule 'cosin'"), (["--engine", "ref"], 2, "--engine: engine 'ref' cannot train"), (["--label", "lable"], 4, "no array 'lable' for the labels (--label)"),
                             (["--data", "bad.npz"], 4, f"bad.npz: array 'label': example 0 has label {OUT}: expected 0 to {OUT - 1}"),
                             (["--data", "last.npz"], 4, f"last.npz: array 'label': example {N - 1} has label -1: expected 0 to {OUT - 1}"), (["--validate", "last.npz"], 4, f"example {N - 1} has label -1"),
                             (["--lr", "1e39"], 4, "a weight of 'w1' is not finite in epoch 1, step 1"), (["--lr", "1e39", "--batch", "6", "--accumulate", "2"], 4, "a weight of"), (["--data", "long.npz"], 4, "no input has as many"), (["--loss", "mse"], 4, "labels of f32"),
                             (["--freeze", "zz*"], 2, "freeze=zz*"), (["--lr", "3e38", "--optimizer", "sgd", "--loss", "mse", "--data", "mse.npz", "--epochs", "9"], 4, "not finite"), (["-o", "x.npz"], 2, "x.npz"),
                             (["--validate", "none.npz"], 5, "none.npz")):
        train(env, [*base, *words], folder, code, has)
        want(not os.path.exists(os.path.join(folder, "new.onnx")), "a refused training left a file")
        if os.path.exists(os.path.join(folder, "new.onnx.checkpoint")):
            os.remove(os.path.join(folder, "new.onnx.checkpoint"))
    train(env, [*base, "--loss", "mse", "--data", "mse.npz", "--validate", "far.npz"], folder, 0, "warning: net.onnx: the loss on far.npz is not finite after epoch 1")
    train(env, ["four.onnx", *base[1:]], folder, 3, "expected batches of 4")
    train(env, ["four.onnx", *base[1:], "--batch", "4"], folder, 0, "skips 2 of 6 examples")


MPI = ["mpirun", "--allow-run-as-root", "--oversubscribe"]


def ranks(env):
    """2 and 4 MPI processes, and one process with as many accumulation steps: the same bits, also with partial batches. A killed
    process ends the others, and the same command resumes."""
    folder = env.scratch("fit", "ranks")
    words = [DIGITS, "--data", IMAGES, "--batch", "24", "--epochs", "2", "--lr", "0.01", "--optimizer", "adam", "--seed", "3", "--engine", "vm"]
    for shares, counts in ((2, (2,)), (4, (2, 4))):
        alone = train(env, [*words, "--accumulate", str(shares), "-o", "alone.onnx"], folder)
        with open(os.path.join(folder, "alone.onnx"), "rb") as f:
            bits = f.read()
        need("mpirun")
        for n in counts:
            got = run([*MPI, "-n", str(n), env.ingot, "train", *words, "--accumulate", str(shares), "-o", "many.onnx"], 120, cwd=folder)
            want(not got.rc, f"{n} processes: {explain(got)}: {tail(got.text())}")
            want(got.out == alone.out, f"{n} processes tell {got.out.decode()}, expected {alone.out.decode()}")
            with open(os.path.join(folder, "many.onnx"), "rb") as f:
                want(f.read() == bits, f"{n} processes and {shares} shares give other weights")
    many = [*MPI, "-n", "2", env.ingot, "train", *words, "--accumulate", "4", "-o", "killed.onnx", "--checkpoint-every", "0"]
    ended = 0
    for _ in range(2):
        p = subprocess.Popen([*many], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder, start_new_session=True)
        ended += kill_rank(p, os.path.join(folder, "killed.onnx.checkpoint"))
    want(ended, "no process was killed before it had ended")
    got = run(many, 120, cwd=folder)
    want(not got.rc, f"going on: {explain(got)}: {tail(got.text())}")
    with open(os.path.join(folder, "killed.onnx"), "rb") as f:
        want(f.read() == bits, "a killed process leaves other weights")


def kill_rank(p, checkpoint):
    """Kills one process of mpirun when there is a checkpoint, and waits until all have ended."""
    limit = time.monotonic() + 60
    while p.poll() is None and not os.path.exists(checkpoint) and time.monotonic() < limit:
        time.sleep(0.01)
    found = [int(x) for x in run(["pgrep", "-P", str(p.pid)], 10).out.split()]
    if found and p.poll() is None:
        os.kill(found[-1], signal.SIGKILL)
    try:
        p.wait(60)
    except subprocess.TimeoutExpired:
        p.kill()
        raise Fail("mpirun does not end when a process is killed") from None
    return p.returncode != 0


MAIN = r"""
#include "step.h"
#include <stdio.h>
#include <string.h>
_Alignas(64) static unsigned char arena[STEP_ARENA_BYTES], kept[STEP_STATE_BYTES], test[STEP_SELFTEST_BYTES];
int main(void) {
  float x[256], p[40], q[40], first = 0, loss = 0;
  int64_t y[4] = {3, 1, 4, 1};
  for (int i = 0; i < 256; i++) x[i] = (float)(i * 37 % 17) / 16;
  if (step_selftest(test)) return 2;
  step_reset(arena);
  for (int k = 0; k < 20; k++) {
    if (step_train(arena, x, y, &loss)) return 3;
    if (!k) first = loss;
  }
  step_save(arena, kept);
  if (step_run(arena, x, p)) return 4;
  if (step_train(arena, x, y, &loss) || step_run(arena, x, q) || !memcmp(p, q, sizeof p)) return 5; /* runs see what was learnt */
  memset(arena, 1, sizeof arena);
  step_load(arena, kept);
  if (step_run(arena, x, q) || memcmp(p, q, sizeof p)) return 6;
  for (int i = 0; i < 4; i++) printf("%.9g ", p[10 * i + y[i]]);
  printf("%.9g %.9g\n", first, loss);
  return 0;
}
"""


def emitted(env):
    """Training as C: the self-test passes, the loss falls, runs use the learned weights, which can be saved and loaded; the
    header and the command report the same RAM. Weights are stored once."""
    folder = env.scratch("fit", "emitted")
    told = must([env.need_ingot(), "train", DIGITS, "--emit", os.path.join(folder, "step.c"), "--batch", "4", "--optimizer", "adam", "--lr", "0.01"], "emit")
    with open(os.path.join(folder, "step.h")) as f:
        macros = dict(re.findall(r"#define STEP_(\w+) (\d+)", f.read()))
    want(told == f"RAM {macros['RAM_BYTES']} bytes\n", f"told {told}, the header has {macros['RAM_BYTES']}")
    with open(os.path.join(folder, "main.c"), "w") as f:
        f.write(MAIN)
    must(["cc", "-std=c11", "-O1", "-Wall", "-Werror", "-o", os.path.join(folder, "main"), os.path.join(folder, "main.c"), os.path.join(folder, "step.c")], "cc")
    *p, first, last = (float(x) for x in must([os.path.join(folder, "main")], "the program").split())
    want(last < 0.1 * first and min(p) > 0.9, f"loss {first} -> {last}, probabilities {p}")
    weights = int(macros["WEIGHT_BYTES"])
    want(weights < 20000, f"{weights} bytes of weights: they are there twice")


def tests(env):
    out = [Test(f"fit/{o}", lambda o=o: formulas(env, o), cost=1) for o in ("sgd", "momentum", "adamw", "rmsprop", "adagrad")]
    out += [Test(f"fit/adam-{e}", lambda e=e: formulas(env, "adam", engine=e), cost=2) for e in ("c", "interp")]
    out += [Test("fit/mse", lambda: formulas(env, "adam", "mse"), cost=1), Test("fit/bce", lambda: formulas(env, "adam", "bce_logits"), cost=1)]
    out.append(Test("fit/clip", lambda: formulas(env, "sgd", more=("--clip", "0.1"), update=clipped), cost=1))
    out += [Test(f"fit/shares-{e}", lambda e=e: formulas(env, "adam", engine=e, more=("--accumulate", "3")), cost=2) for e in ("vm", "c")]
    out += [Test(f"fit/left-{e}", lambda e=e: leftover(env, e), cost=1) for e in ("vm", "c")]
    out += [Test("fit/schedules", lambda: schedules(env), cost=1), Test("fit/scores", lambda: scores(env), cost=3)]
    out += [Test("fit/patience", lambda: patience(env), cost=2), Test("fit/killed-patience", lambda: killed(env, "killed-patience", ("--lr", "0.05", "--epochs", "6", "--patience", "2")), cost=6)]
    out += [Test("fit/killed", lambda: killed(env), cost=6), Test("fit/interrupted", lambda: interrupted(env), cost=2), Test("fit/resumed", lambda: resumed(env), cost=1), Test("fit/other", lambda: other(env), cost=1), Test("fit/refused", lambda: refused(env), cost=2)]
    out += [Test(f"fit/mode-{k}", lambda k=k: modes(env, k), cost=3) for k in (9, 17)] + [Test("fit/inner", lambda: inner_modes(env), cost=1), Test("fit/quantized", lambda: quantized(env), cost=1)]
    out += [Test("fit/ranks", lambda: ranks(env), cost=6), Test("fit/emit", lambda: emitted(env), cost=3), Test("fit/digits", lambda: digits(env), cost=6)]
    return out
