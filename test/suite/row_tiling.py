"""Row tiling: random networks of convolutions, maps, sums, concatenations and pools give the same bits with and without tiling.

On vectors, inputs are small integers, because families may add in another order.
On some networks tiling must save much memory.
A RAM limit is kept or refused, and the output says what was changed for it.
"""
import array
import math
import os
import random
import re
import struct
import zipfile

from lib import cpu
from lib.core import ROOT, Fail, Test, must, tail

NETS = 24


class Text:
    """A network as text: values are [channels, rows, columns] after a batch axis."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.lines, self.shape, self.first = [], {}, []
        self.batch = self.rng.choice([1, 1, 1, 2])

    def add(self, op, shape):
        name = f"%v{len(self.lines)}"
        dims = ",".join(map(str, [self.batch, *shape]))
        self.lines.append(f"  {name}: f32[{dims}] = {op}")
        self.shape[name] = shape
        return name

    def const(self, *shape):
        name = f"%w{len(self.lines)}"
        n = math.prod(shape)
        values = ", ".join(str(self.rng.choice([-1, 0, 0, 1])) for _ in range(n))
        self.lines.append(f"  {name}: f32[{','.join(map(str, shape))}] = const {{{values}}}")
        return name

    def window(self, x, kind):
        r, (c, h, w) = self.rng, self.shape[x]
        k = [r.randint(1, 4), r.randint(1, 3)]
        d = [r.choice([1, 1, 2]), 1]
        s = [r.randint(1, 3), r.randint(1, 2)]
        span = [(k[i] - 1) * d[i] + 1 for i in range(2)]
        lo, hi = ([r.randint(0, span[i] - 1) for i in range(2)] for _ in range(2))
        size = [(n + lo[i] + hi[i] - span[i]) // s[i] + 1 if n + lo[i] + hi[i] >= span[i] else 0 for i, n in enumerate((h, w))]
        if min(size) < 1:
            return x
        attrs = f"stride={s}, dilation={d}, pad_lo={lo}, pad_hi={hi}"
        if kind == "pool":
            return self.add(f"{r.choice(['pool_max', 'pool_sum'])}({x}) {{window={k}, {attrs}}}", [c, *size])
        group = c if kind == "depthwise" else r.choice([g for g in (1, 2) if c % g == 0])
        out = c if kind == "depthwise" else group * r.randint(1, 8)
        weight = self.const(out, c // group, *k)
        return self.add(f"conv({x}, {weight}) {{group={group}, {attrs}}}", [out, *size])

    def spread(self, x):
        c, h, w = self.shape[x]
        k, by, lo, hi = self.rng.randint(2, 4), self.rng.randint(2, 3), self.rng.randint(0, 1), self.rng.randint(0, 2)
        size = [(n - 1) * by + 1 + lo + hi - k + 1 for n in (h, w)]
        if min(size) < 1 or max(size) > 40:
            return x
        out = self.rng.randint(1, 4)
        weight = self.const(out, c, k, k)
        attrs = f"group=1, stride=[1,1], dilation=[1,1], pad_lo=[{lo},{lo}], pad_hi=[{hi},{hi}], input_dilation=[{by},{by}]"
        return self.add(f"conv({x}, {weight}) {{{attrs}}}", [out, *size])

    def map(self, x):
        c, h, w = self.shape[x]
        op, shape = self.rng.choice([("max", []), ("add", [c, 1, 1]), ("mul", [1, c, 1, w]), ("sub", [h, w])])
        weight = self.const(*shape)
        return self.add(f"{op}({x}, {weight})", self.shape[x])

    def join(self, x):
        same = [v for v, s in self.shape.items() if s == self.shape[x] and v != x]
        rows = [v for v, s in self.shape.items() if s[1:] == self.shape[x][1:] and v != x]
        if same and self.rng.random() < 0.6:
            return self.add(f"add({x}, {self.rng.choice(same)})", self.shape[x])
        if not rows:
            return self.map(x)
        y = self.rng.choice(rows)
        return self.add(f"concat({x}, {y}) {{axis=1}}", [self.shape[x][0] + self.shape[y][0], *self.shape[x][1:]])

    def network(self):
        r, first = self.rng, [self.rng.randint(1, 4), self.rng.randint(12, 30), self.rng.randint(4, 20)]
        self.first = [self.batch, *first]
        x = "%x"
        self.shape[x] = first
        for _ in range(r.randint(3, 10)):
            kind = r.choice(["conv", "conv", "depthwise", "pool", "spread", "map", "map", "join"])
            x = self.window(x, kind) if kind in ("conv", "depthwise", "pool") else getattr(self, kind)(x)
        if x == "%x":
            x = self.map(x)
        if r.random() < 0.5:
            c, fold = self.shape[x][0], r.choice(["reduce_sum", "reduce_sum", "reduce_max", "reduce_min"])
            axes, shape = r.choice([("[2,3]", [c, 1, 1]), ("[2]", [c, 1, self.shape[x][2]])])
            x = self.add(f"{fold}({x}) {{axes={axes}, keep=1}}", shape)
            if r.random() < 0.5:
                x = self.add(f"mul({x}, {self.const()})", shape)
        dims = ",".join(map(str, [self.batch, *first]))
        return "\n".join([f'graph (%x "x": f32[{dims}]) {{', *self.lines, f'  return {x} "y"', "}"]) + "\n"


def write_input(path, shape, by=1):
    """Small integers as .npy, divided by a number."""
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    values = [((i * 7 + i // 3) % 5 - 2) / by for i in range(math.prod(shape))]
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack(f"<{len(values)}f", *values))


def result(env, program, given, to):
    must([env.ingot, "run", program, "--input", f"x=@{given}", "--engine", "interp", "--quiet", "--output", to], f"run {program}")
    with zipfile.ZipFile(to) as f:
        data = f.read("y.npy")
    values = array.array("f", data[10 + struct.unpack("<H", data[8:10])[0]:])
    return values.tolist()


def same_bits(env, target):
    env.need_ingot()
    work, cut = env.scratch("row_tiling", target), 0
    net, whole, tiled, given, out = (os.path.join(work, n) for n in ("net.ing", "whole.prog", "tiled.prog", "in.npy", "out.npz"))
    for seed in range(NETS):
        made = Text(seed)
        with open(net, "w") as f:
            f.write(made.network())
        write_input(given, made.first, 7 if target == "scalar" else 1)
        opt = [env.ingot, "opt", net, "--march", target, "--check", "--quiet"]
        must([*opt, "--ram", "1000M", "--output", whole], "whole")
        want = result(env, whole, given, out)
        for ram in ("2", str(random.Random(seed).randint(200, 6000))):
            text = must([*opt, "--ram", ram, "--stop=row_tiling"], "band")
            cut += "keep=1" in text or "axis=2}" in text
            must([*opt, "--ram", ram, "--output", tiled], "tiled")
            if result(env, tiled, given, out) != want:
                raise Fail(f"network {seed} for {target} within {ram} bytes: row tiling changes the bits")
    if cut < NETS:
        raise Fail(f"only {cut} of {2 * NETS} programs were tiled")


def arena(text):
    return int(re.search(r"^arena (\d+)", text, re.M)[1])


def ram(text):
    return int(re.search(r"(\d+) bytes of RAM in all", text)[1])


def network(env, test):
    """Inverted residuals that halve the image, as text: scalar loops cannot tile them by channels."""
    path, t = os.path.join(env.scratch("row_tiling", test), "network.ing"), Text(1)
    t.batch, x = 1, "%x"
    t.shape[x] = [3, 48, 48]

    def conv(x, out, k, s, group=1):
        c, h, w = t.shape[x]
        weight = t.const(out, c // group, k, k)
        pad = f"pad_lo=[{k // 2},{k // 2}], pad_hi=[{k // 2},{k // 2}]"
        y = t.add(f"conv({x}, {weight}) {{group={group}, stride=[{s},{s}], dilation=[1,1], {pad}}}",
                  [out, (h - 1) // s + 1, (w - 1) // s + 1])
        return t.add(f"max({y}, {t.const()})", t.shape[y])

    x = conv(x, 8, 3, 1)
    for out, stride in ((8, 2), (16, 1), (16, 2)):
        x = conv(conv(conv(x, 4 * t.shape[x][0], 1, 1), 4 * t.shape[x][0], 3, stride, 4 * t.shape[x][0]), out, 1, 1)
    y = t.add(f"reduce_sum({x}) {{axes=[2,3], keep=1}}", [16, 1, 1])
    with open(path, "w") as f:
        f.write("\n".join(['graph (%x "x": f32[1,3,48,48]) {', *t.lines, f'  return {y} "y"', "}"]) + "\n")
    return path


def saves(env):
    env.need_ingot()
    model = network(env, "saves")
    for target in ("scalar", "avx2"):
        base = [env.ingot, "inspect", model, "--march", target]
        time, got = must(base, "inspect", merge=True), must([*base, "--optimize-for", "ram"], "inspect for ram", merge=True)
        if arena(got) * 4 > arena(time) * 3:
            raise Fail(f"{target}: the arena is {arena(got)}, and {arena(time)} for time")
        if ram(got) >= ram(time) or f"for {target}: {ram(got)} bytes of RAM instead of {ram(time)}" not in got or "row tiling" not in got:
            raise Fail(f"what was traded is not said: {tail(got, 4)}")


def budget(env):
    """A limit that the fast program meets changes nothing, a lower one leads to row tiling, a too low one to a refusal."""
    env.need_ingot()
    model = network(env, "budget")
    work = env.scratch("row_tiling", "budget")
    base = [env.ingot, "compile", model, "--no-selftest", "--name", "net"]
    plain, roomy, tight = (os.path.join(work, n) for n in ("plain.c", "roomy.c", "tight.c"))
    must([*base, "-o", plain], "plain")
    said = must([*base, "--ram", "100M", "-o", roomy], "roomy", merge=True)
    if said:
        raise Fail(f"nothing was given up, but it says {said}")
    least = must([*base, "--ram", "1K", "-o", tight], "refused", 3, merge=True)
    need = int(re.search(r"needs (\d+) bytes in the smallest program that was found, for scalar", least)[1])
    for word in ("needed at the same time", "in the kernel", "what helps", "f32["):
        if word not in least:
            raise Fail(f"the refusal does not say {word}: {least}")
    said = must([*base, "--ram", str(need), "-o", tight], "tight", merge=True)
    if "row tiling" not in said:
        raise Fail(f"does not say what was traded: {said}")
    with open(plain) as f, open(roomy) as g:
        if f.read().split("*/", 1)[1] != g.read().split("*/", 1)[1]:
            raise Fail("a budget that is met changes the program")
    said = must([*base, "--march", "avx2", "--ram", str(need), "-o", tight], "without vectors", merge=True)
    with open(tight) as f, open(tight[:-1] + "h") as g:
        source, header = f.read(), g.read()
    if "for avx2: " not in said or "without vectors (scalar)" not in said:
        raise Fail(f"does not say that vectors were given up: {said}")
    if 'NET_TARGET "scalar"' not in header or 'return "scalar"' not in source or "march=avx2" not in source:
        raise Fail("plain loops in place of avx2 are not named so")
    said = must([*base, "--march", "multi", "--ram", str(need), "-o", tight], "several targets", 3, merge=True)
    if "one target instead of several" not in said:
        raise Fail(f"does not say what helps: {said}")
    for bad in ("0", "x", "12Q", "-4K", "99999999999999999999"):
        must([*base, "--ram", bad, "-o", tight], bad, 2)


def named(env):
    """A refusal names the ONNX nodes whose results are alive at the peak, and their bytes."""
    env.need_ingot()
    digits = [os.path.join(ROOT, "models", "digits.onnx"), "-d", "batch=1"]
    said = must([env.ingot, "compile", *digits, "--ram", "1K"], "refused", 3, merge=True)
    if not re.search(r"f32\[1,[\d,]+\] \d+ bytes of node \d+ '\w+' \(\w+\)", said):
        raise Fail(f"names no node: {said}")


def compiled(env, target):
    env.need_ingot()
    cpu.need(target)
    model = network(env, "compiled-" + target)
    must([env.ingot, "verify", model, "--march", target, "--optimize-for", "ram", "--quiet"], "verify")


def tests(env):
    return [*[Test(f"row_tiling/same_bits {t}", lambda t=t: same_bits(env, t), cost=5) for t in ("scalar", "avx2")],
            *[Test(f"row_tiling/compiled {t}", lambda t=t: compiled(env, t), cost=6) for t in ("scalar", "avx2")],
            Test("row_tiling/saves", lambda: saves(env)), Test("row_tiling/budget", lambda: budget(env)), Test("row_tiling/named", lambda: named(env))]
