"""A training step equals the same formulas written by hand, step by step, on every engine, and the loss falls."""
import math
import os
import random
import re
from lib import npy, onnxfile
from lib.core import ENGINES, ROOT, Fail, Test, explain, run, tail

N, IN, HIDDEN, OUT = 6, 4, 5, 3
RATE = 0.05


def numbers(r, *shape):
    n = 1
    for k in shape:
        n *= k
    return [round(r.gauss(0, 0.6), 3) for _ in range(n)]


def const(values):
    return "{" + ", ".join(repr(v) for v in values) + "}"


class Net:
    """Two dense layers with tanh between, in double: forward, backward and update from the textbook."""

    def __init__(self, loss, smoothing=0.0):
        r = random.Random(7)
        self.loss, self.smoothing = loss, smoothing
        self.w = {"w1": numbers(r, IN, HIDDEN), "b1": numbers(r, HIDDEN), "w2": numbers(r, HIDDEN, OUT), "b2": numbers(r, OUT)}
        self.x = numbers(r, N, IN)
        self.label = [r.randrange(OUT) for _ in range(N)] if loss == "cross_entropy" else [float(r.randrange(2)) for _ in range(N * OUT)]
        self.m, self.v, self.t = {}, {}, 0

    def text(self):
        shapes = {"w1": f"{IN},{HIDDEN}", "b1": f"{HIDDEN}", "w2": f"{HIDDEN},{OUT}", "b2": f"{OUT}"}
        lines = [f'  %{k} "{k}": f32[{shapes[k]}] = const {const(v)}' for k, v in self.w.items()]
        return (f'graph (%x "x": f32[{N},{IN}]) {{\n' + "\n".join(lines) + f'''
  %p: f32[{N},{HIDDEN}] = contract(%x, %w1) {{spec = "nk,km->nm"}}
  %q: f32[{N},{HIDDEN}] = add(%p, %b1)
  %h: f32[{N},{HIDDEN}] = tanh(%q)
  %r: f32[{N},{OUT}] = contract(%h, %w2) {{spec = "nk,km->nm"}}
  %y: f32[{N},{OUT}] = add(%r, %b2)
  return %y "y"
}}
''')

    def step(self, update):
        w, x = self.w, self.x
        h = [[math.tanh(w["b1"][j] + sum(x[i * IN + k] * w["w1"][k * HIDDEN + j] for k in range(IN))) for j in range(HIDDEN)] for i in range(N)]
        y = [[w["b2"][j] + sum(h[i][k] * w["w2"][k * OUT + j] for k in range(HIDDEN)) for j in range(OUT)] for i in range(N)]
        loss, dy = 0.0, []
        for i in range(N):
            if self.loss == "cross_entropy":
                total = sum(math.exp(v) for v in y[i])
                target = [(1 - self.smoothing) * (j == self.label[i]) + self.smoothing / OUT for j in range(OUT)]
                loss += sum(t * (math.log(total) - v) for t, v in zip(target, y[i])) / N
                dy.append([(math.exp(v) / total - t) / N for t, v in zip(target, y[i])])
                continue
            row = []
            for j, v in enumerate(y[i]):
                t = self.label[i * OUT + j]
                if self.loss == "mse":
                    loss += (v - t) ** 2 / (N * OUT)
                    row.append(2 * (v - t) / (N * OUT))
                else:
                    p = 1 / (1 + math.exp(-v))
                    loss -= (t * math.log(p) + (1 - t) * math.log(1 - p)) / (N * OUT)
                    row.append((p - t) / (N * OUT))
            dy.append(row)
        dh = [[sum(dy[i][j] * w["w2"][k * OUT + j] for j in range(OUT)) * (1 - h[i][k] ** 2) for k in range(HIDDEN)] for i in range(N)]
        d = {"w1": [sum(x[i * IN + k] * dh[i][j] for i in range(N)) for k in range(IN) for j in range(HIDDEN)],
             "b1": [sum(dh[i][j] for i in range(N)) for j in range(HIDDEN)],
             "w2": [sum(h[i][k] * dy[i][j] for i in range(N)) for k in range(HIDDEN) for j in range(OUT)],
             "b2": [sum(dy[i][j] for i in range(N)) for j in range(OUT)]}
        self.t += 1
        update(self, d)
        return loss


# ---- optimizers, as in PyTorch ----

def each(fn):
    def update(n, d):
        for k, row in d.items():
            m, v = n.m.setdefault(k, [0.0] * len(row)), n.v.setdefault(k, [0.0] * len(row))
            for i, g in enumerate(row):
                n.w[k][i], m[i], v[i] = fn(n.w[k][i], g, m[i], v[i], n.t)
    return update


def adam(w, g, m, v, t, decay=0.0):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return w * (1 - RATE * decay) - RATE * (m / (1 - 0.9 ** t)) / (math.sqrt(v / (1 - 0.999 ** t)) + 1e-8), m, v


def lion(w, g, m, v, t):
    c = 0.9 * m + 0.1 * g
    return w - RATE * ((c > 0) - (c < 0) + 0.1 * w), 0.99 * m + 0.01 * g, v


def lamb(n, d):
    for k, row in d.items():
        m, v = n.m.setdefault(k, [0.0] * len(row)), n.v.setdefault(k, [0.0] * len(row))
        for i, g in enumerate(row):
            m[i], v[i] = 0.9 * m[i] + 0.1 * g, 0.999 * v[i] + 0.001 * g * g
        u = [a / (1 - 0.9 ** n.t) / (math.sqrt(b / (1 - 0.999 ** n.t)) + 1e-6) + 0.01 * w for a, b, w in zip(m, v, n.w[k])]
        of_w, of_u = (math.sqrt(sum(x * x for x in r)) for r in (n.w[k], u))
        ratio = of_w / of_u if of_w > 0 and of_u > 0 else 1
        n.w[k] = [w - RATE * ratio * x for w, x in zip(n.w[k], u)]


OPTIMIZERS = {
    "sgd": each(lambda w, g, m, v, t: (w - RATE * g, m, v)),
    "momentum": each(lambda w, g, m, v, t: (w - RATE * (0.9 * m + g), 0.9 * m + g, v)),
    "adam": each(adam),
    "adamw": each(lambda *a: adam(*a, decay=0.01)),
    "rmsprop": each(lambda w, g, m, v, t: (w - RATE * g / (math.sqrt(0.99 * v + 0.01 * g * g) + 1e-8), m, 0.99 * v + 0.01 * g * g)),
    "adagrad": each(lambda w, g, m, v, t: (w - RATE * g / (math.sqrt(v + g * g) + 1e-10), m, v + g * g)),
    "decayed": each(lambda w, g, m, v, t: (w - RATE * (g + 0.1 * w), m, v)),
    "lion": each(lion),
    "lamb": lamb,
}
SPECS = {"decayed": "sgd,decay=0.1", "lion": "lion,decay=0.1"}


def clipped(n, d):
    length = math.sqrt(sum(g * g for row in d.values() for g in row)) + 1e-6
    OPTIMIZERS["sgd"](n, {k: [g * min(1, 0.1 / length) for g in row] for k, row in d.items()})


def clipped_elements(n, d):
    OPTIMIZERS["sgd"](n, {k: [max(-0.05, min(0.05, g)) for g in row] for k, row in d.items()})


def check(env, loss, optimizer, update, engines, steps=(1, 2, 3, 8), smoothing=0.0):
    env.need_ingot()
    net = Net(loss, smoothing)
    folder = env.scratch("train", f"{loss}-{optimizer}")
    path = os.path.join(folder, "net.ing")
    with open(path, "w", encoding="utf-8") as f:
        f.write(net.text())
    label = "[" + ",".join(str(v) for v in net.label) + "]"
    if loss != "cross_entropy":
        label = "[" + ",".join("[" + ",".join(str(v) for v in net.label[i * OUT:i * OUT + OUT]) + "]" for i in range(N)) + "]"
    x = "[" + ",".join("[" + ",".join(str(v) for v in net.x[i * IN:i * IN + IN]) + "]" for i in range(N)) + "]"
    want = [net.step(update) for _ in range(max(steps))]
    if want[-1] > 0.99 * want[0]:
        raise Fail(f"the loss does not fall: {want}")
    for engine in engines:
        for k in steps:
            out = os.path.join(folder, f"{engine}.npz")
            got = run([env.ingot, "run", path, "--train", f"loss={loss},optimizer={SPECS.get(optimizer, optimizer)}", "--input", f"x={x}", "--input", f"label={label}",
                       "--input", f"rate={RATE}", "--steps", str(k), "--engine", engine, "-o", out], 60)
            if got.rc:
                raise Fail(f"{engine}: {explain(got)}: {tail(got.text())}")
            found = npy.load_npz(out)["loss"].data[0]
            if not abs(found - want[k - 1]) <= 1e-5 * max(1, abs(want[k - 1])):
                raise Fail(f"{engine}: the loss of step {k} is {found}, expected {want[k - 1]}")


def network(env, target):
    """Convolutions with trained weights: panels are packed at run time. Engines agree to the bit, and with ref within rounding."""
    env.need_ingot()
    folder = env.scratch("train", "digits-" + target)
    model = os.path.join(ROOT, "models", "digits.onnx")
    words = [model, "-d", "batch=4", "--train", "loss=cross_entropy,optimizer=momentum", "--input", "rate=0.05", "--input", "label=[3,1,4,1]", "--march", target,
             "--input", "image=rand", "--steps", "4"]
    got = run([env.ingot, "verify", *words, "--engine", "vm"], 60)
    if got.rc:
        raise Fail(f"{explain(got)}: {tail(got.out.decode() + got.text())}")
    bits = []
    for engine in ("interp", "vm"):
        out = os.path.join(folder, engine + ".npz")
        got = run([env.ingot, "run", *words, "--engine", engine, "-o", out], 60)
        if got.rc:
            raise Fail(f"{engine}: {explain(got)}: {tail(got.text())}")
        with open(out, "rb") as f:
            bits.append(f.read())
    if bits[0] != bits[1]:
        raise Fail("interp and vm differ in their bits")


def weights(env):
    """Trained weights are initializers of any size, also when reshaped; not Constant nodes, scalars and frozen weights."""
    env.need_ingot()
    g = onnxfile.Graph()
    x = g.input([2, 3], name="x")
    w = g.node("Reshape", [g.const([3], [0.5, -1, 2], name="w"), g.ints(3, 1)])
    c = g.node("Reshape", [g.node("Constant", [], value_float=0.5), g.ints(1)])
    y = g.node("Add", [g.node("Mul", [g.node("MatMul", [x, w]), c]), g.const([1], [0.25], name="bias")])
    g.output(g.node("Mul", [y, g.const([], [2.0], name="scale")], ["y"]), [2, 1])
    path = os.path.join(env.scratch("train", "weights"), "net.onnx")
    with open(path, "wb") as f:
        f.write(onnxfile.model(g))
    for more, want in (("", ["w", "bias"]), (",freeze=b*", ["w"])):
        got = run([env.ingot, "opt", path, "--train", "loss=mse" + more, "--stop=none"], 20)
        found = re.findall(r'"(\w+)\.next" next', got.out.decode())
        if got.rc or found != want:
            raise Fail(f"{more}: {explain(got)}: {found}, expected {want}: {tail(got.text())}")
    losses = []
    for steps in ("1", "9"):
        out = path[:-5] + ".npz"
        got = run([env.ingot, "run", path, "--train", "loss=mse", "--input", "x=[[1,2,3],[0,1,0]]", "--input", "label=[[1],[2]]", "--input", "rate=0.01", "--steps", steps, "-o", out], 20)
        if got.rc:
            raise Fail(f"{explain(got)}: {tail(got.text())}")
        losses.append(npy.load_npz(out)["loss"].data[0])
    if not losses[1] < 0.7 * losses[0]:
        raise Fail(f"the loss does not fall: {losses}")



def small(env, name):
    path = os.path.join(env.scratch("train", name), "net.ing")
    with open(path, "w", encoding="utf-8") as f:
        f.write(Net("cross_entropy").text())
    return path


def expect(env, words, code, has):
    got = run([env.ingot, *words], 30)
    if got.rc != code or has not in got.text():
        raise Fail(f"{' '.join(words)}: {explain(got)}, expected {code} with {has!r}: {tail(got.text())}")
    return got


def numbers_of(env):
    """0 is a valid number; numbers out of range are refused, not clamped."""
    check(env, "cross_entropy", "adamw,decay=0", OPTIMIZERS["adam"], ("vm",), (8,))
    check(env, "cross_entropy", "momentum,momentum=0", OPTIMIZERS["sgd"], ("vm",), (8,))
    path = small(env, "numbers")
    for spec, has in (("axis=4294967297", "below 16"), ("axis=1e300", "below 16"), ("axis=0.5", "a whole number"), ("axis=nan", "a number from 0"), ("beta1=1", "below 1"),
                      ("decay=inf", "below 1e+38"), ("recompute=2", "below 2"), ("smoothing=1", "below 1"), ("loss=mse,smoothing=0.1", "smoothing is for loss cross_entropy")):
        expect(env, ["inspect", path, "--train", spec], 2, has)
    got = expect(env, ["opt", path, "--train", "axis=0", "--stop=none"], 0, "")
    if f'"label": i64[{OUT}]' not in got.out.decode():
        raise Fail(f"axis=0: {got.out.decode()[:400]}")


def labels(env):
    """A label that is not a class is refused by every engine."""
    path = small(env, "labels")
    for engine in ("ref", "interp", "vm", "c"):
        for bad, has in ((OUT, "is out of range"), (-1, "a label is below 0")):
            expect(env, ["run", path, "--train", "loss=cross_entropy", "--input", "x=1", "--input", "rate=0.1", "--input", f"label=[0,1,2,0,1,{bad}]", "--engine", engine], 4, has)



def rates(env):
    """The default learning rate is the usual one, or that of the option; never uninitialized."""
    path, found = small(env, "rates"), []
    for spec, given in (("", []), (",rate=0.001", []), ("", ["--input", "rate=0.001"]), (",rate=0.5", ["--input", "rate=0.001"]), (",rate=0.5", [])):
        got = expect(env, ["run", path, "--train", "loss=cross_entropy" + spec, "--input", "x=1", "--input", "label=1", "--steps", "5", *given], 0, "")
        if "random" in got.text():
            raise Fail(got.text())
        found.append(got.out)
    if len(set(found[:4])) != 1 or found[4] == found[0]:
        raise Fail(f"{found}")


def names(env):
    """A pattern that matches nothing, and inputs or weights named like those that the step adds."""
    path = small(env, "names")
    expect(env, ["inspect", path, "--train", "freeze=w*,freeze=zz*"], 2, "freeze=zz*: no weight has such a name")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    for old, new, has in (('"x"', '"label"', "an input 'label'"), ('"x"', '"rate"', "an input 'rate'"), ('"b1"', '"rate"', "a weight 'rate'")):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text.replace(old, new))
        expect(env, ["opt", path, "--train", "loss=mse", "--stop=none"], 3, has)



def header(env):
    """The state of a step has fixed sizes, which a run cannot change: the header has no status for it, except in the enum, which
    is the same for all models."""
    path = small(env, "header")
    expect(env, ["compile", path, "--train", "loss=cross_entropy", "-o", path[:-4] + ".c"], 0, "")
    with open(path[:-4] + ".h", encoding="utf-8") as f:
        text = f.read()
    if "never cleared" in text.partition("};")[2] or "Initializes the state" not in text or "A run without it" not in text:
        raise Fail(text[-1500:])


def tests(env):
    some = [e for e in ENGINES if e in ("ref", "interp", "vm")]
    out = [Test(f"train/{o}", lambda o=o: check(env, "cross_entropy", o, OPTIMIZERS[o], some), cost=1) for o in OPTIMIZERS]
    out += [Test(f"train/{loss}", lambda k=loss: check(env, k, "adam", OPTIMIZERS["adam"], ("vm",)), cost=1) for loss in ("mse", "bce_logits")]
    out.append(Test("train/header", lambda: header(env), cost=1))
    out += [Test("train/rates", lambda: rates(env), cost=1), Test("train/names", lambda: names(env), cost=1)]
    out += [Test("train/numbers", lambda: numbers_of(env), cost=1), Test("train/labels", lambda: labels(env), cost=2)]
    out.append(Test("train/weights", lambda: weights(env), cost=1))
    out.append(Test("train/clip", lambda: check(env, "cross_entropy", "sgd,clip=0.1", clipped, ("vm",), (1, 8)), cost=1))
    out.append(Test("train/clip_value", lambda: check(env, "cross_entropy", "sgd,clip_value=0.05", clipped_elements, ("vm",), (1, 8)), cost=1))
    out.append(Test("train/smoothing", lambda: check(env, "cross_entropy", "adam,smoothing=0.1", OPTIMIZERS["adam"], some, (1, 8), smoothing=0.1), cost=1))
    out.append(Test("train/c", lambda: check(env, "cross_entropy", "adam", OPTIMIZERS["adam"], ("c",), (3,)), cost=2))
    out += [Test(f"train/digits-{t}", lambda t=t: network(env, t), cost=1) for t in ("sse2", "avx2", "avx512")]
    return out
