"""Random graphs of single operators in text form, for comparing engines.

A dimension is a pair (text, extent): the text is a number or a symbol of the graph, the extent is the size for the inputs. Everything
follows from the seed.
"""
import random
from . import npy

FLOATS = ("f64", "f32", "f32", "f32", "f16", "bf16", "f8e4m3fn", "f8e5m2", "f8e5m2fnuz")
INTS = ("i64", "i32", "i8", "u8", "u64", "u16", "i4", "u2")
SPECIAL = (0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1.0, -1.0, 0.5, 448.0, 60000.0)


class Graph:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.params, self.lines, self.results, self.inputs, self.syms = [], [], [], {}, {}
        self.n = 0
        self.rare = self.r.random() < 0.3  # infinities and NaN among the inputs

    # ---- pieces ----

    def name(self):
        self.n += 1
        return f"v{self.n}"

    def dim(self, lo=0, sym=True):
        k = self.r.choice([x for x in (0, 1, 1, 2, 2, 3, 4, 5, 7, 17) if x >= lo])
        if sym and self.r.random() < 0.25:
            name = f"s{k}"
            if name not in self.syms:
                self.syms[name] = k
                self.param("u8", [(name, k)])  # binds the symbol, even if the operator does not use it
            return name, k
        return str(k), k

    def shape(self, lo=0, hi=4, least=0, sym=True):
        return [self.dim(least, sym) for _ in range(self.r.randint(lo, hi))]

    def value(self, dt):
        if dt == "bool":
            return self.r.random() < 0.5
        if dt[0] == "f":
            return self.r.choice(SPECIAL) if self.rare and self.r.random() < 0.2 else self.r.gauss(0, 2)
        bits = int(dt[1:])
        return self.r.getrandbits(bits) - (1 << bits - 1 if dt[0] == "i" else 0)

    def param(self, dt, shape, values=None):
        v = self.name()
        n = npy.count([k for _, k in shape])
        data = values(n) if values else [self.value(dt) for _ in range(n)]
        self.params.append(f'%{v} "{v}": {self.type(dt, shape)}')
        self.inputs[v] = npy.Array(dt, tuple(k for _, k in shape), data)
        return v

    def operand(self, dt, shape):
        """A parameter; types that .npy lacks are converted from f32 or i8."""
        if dt in npy.KINDS:
            return self.param(dt, shape)
        wide = "f32" if dt[0] in "fb" else "i8" if dt[0] == "i" else "u8"
        return self.add(dt, shape, f"cast(%{self.param(wide, shape)}) {{to = {dt}}}", keep=False)

    @staticmethod
    def type(dt, shape):
        return f"{dt}[{','.join(t for t, _ in shape)}]"

    def add(self, dt, shape, text, keep=True):
        v = self.name()
        self.lines.append(f"  %{v}: {self.type(dt, shape)} = {text}")
        if keep:
            self.keep(v, dt, shape)
        return v

    def keep(self, v, dt, shape):
        """Makes v a result; types that .npy lacks are converted to f64 or i8."""
        if dt not in npy.KINDS:
            wide = "f64" if dt[0] in "fb" else "i8" if dt[0] == "i" else "u8"
            v = self.add(wide, shape, f"cast(%{v}) {{to = {wide}}}", keep=False)
        self.results.append(v)

    def any(self, kinds="fi"):
        return self.r.choice((FLOATS if "f" in kinds else ()) + (INTS if "i" in kinds else ())
                             + (("bool",) if "b" in kinds else ()))

    def text(self):
        syms = "".join(f" sym {s} in 0..20" for s in sorted(self.syms))
        returns = ", ".join(f'%{v} "{v}"' for v in self.results)
        return f"graph{syms} ({', '.join(self.params)}) {{\n" + "\n".join(self.lines) + f"\n  return {returns}\n}}\n"

    # ---- operators ----

    def map(self):
        shape = self.shape()
        dt = self.any()
        ops = ["add", "sub", "mul", "div", "max", "min", "mod", "neg", "abs", "sign"]
        op = self.r.choice(ops + (["floor", "sqrt", "recip"] if dt[0] in "fb" else ["and", "xor", "shr", "not"]))
        args = []
        for i in range(1 if op in ("neg", "abs", "sign", "floor", "sqrt", "recip", "not") else 2):
            mine = [d if i == 0 or self.r.random() < 0.6 else ("1", 1) for d in shape]
            args.append(self.operand(dt, mine[self.r.randint(0, len(mine)) if i else 0:]))
        self.add(dt, shape, f"{op}({', '.join('%' + a for a in args)})")

    def cast(self):
        shape, dt, to = self.shape(), self.any("fib"), self.any("fib")
        if dt != to:
            self.add(to, shape, f"cast(%{self.operand(dt, shape)}) {{to = {to}}}")

    def reduce(self):
        shape, op = self.shape(), self.r.choice(("sum", "prod", "max", "min"))
        dt = self.any("fib" if op in ("max", "min") else "fi")
        axes = [i for i in range(len(shape)) if self.r.random() < 0.5]
        keep = self.r.randint(0, 1)
        out = [("1", 1) if i in axes else d for i, d in enumerate(shape) if keep or i not in axes]
        self.add(dt, out, f"reduce_{op}(%{self.operand(dt, shape)}) {{axes = {axes}, keep = {keep}}}")

    def arg(self):
        shape, dt = self.shape(1, 4, 1), self.any("fib")
        axis, keep, last = self.r.randrange(len(shape)), self.r.randint(0, 1), self.r.randint(0, 1)
        out = [("1", 1) if i == axis else d for i, d in enumerate(shape) if keep or i != axis]
        op = self.r.choice(("argmax", "argmin"))
        self.add("i64", out, f"{op}(%{self.operand(dt, shape)}) {{axis = {axis}, keep = {keep}, last = {last}}}")

    def contract(self):
        letters = {c: self.dim() for c in "abcde"}
        pick = [[c for c in letters if self.r.random() < 0.55] for _ in range(2)]
        for p in pick:
            self.r.shuffle(p)
        out = [c for c in dict.fromkeys(pick[0] + pick[1]) if self.r.random() < 0.6]
        self.r.shuffle(out)
        dt = self.any()
        a, b = (self.operand(dt, [letters[c] for c in p]) for p in pick)
        spec = "".join(pick[0]) + "," + "".join(pick[1]) + "->" + "".join(out)
        self.add(dt, [letters[c] for c in out], f'contract(%{a}, %{b}) {{spec = "{spec}"}}')

    def slide(self, shape, size):
        """Attributes and extents of the result; None if the window does not fit."""
        stride, dil, lo, hi, out = [], [], [], [], []
        for (text, x), k in zip(shape, size):
            s, d = self.r.choice((1, 1, 2, 3)), self.r.choice((1, 1, 2))
            p, q = self.r.choice((0, 0, 1, 2, 5)), self.r.choice((0, 0, 1, 2, 5))
            room = x + p + q - ((k - 1) * d + 1)
            if room < 0:
                return None
            plus = p + q - ((k - 1) * d + 1)
            form = f"({text}{plus:+d})/{s}+1" if not text.isdigit() else str(room // s + 1)
            out.append((form, room // s + 1))
            for to, v in zip((stride, dil, lo, hi), (s, d, p, q)):
                to.append(v)
        return out, f"stride = {stride}, dilation = {dil}, pad_lo = {lo}, pad_hi = {hi}"

    def conv(self):
        group, dt = self.r.choice((1, 1, 2, 3)), self.any("fi" if self.r.random() < 0.9 else "b")
        space = self.shape(0, 3)
        c, m = self.r.choice((1, 2, 3)), self.r.choice((1, 2)) * group
        size = [self.r.choice((1, 2, 3, 3, 9)) for _ in space]
        window = self.slide(space, size)
        if window:
            n = self.dim()
            x = self.operand(dt, [n, (str(c * group), c * group)] + space)
            w = self.operand(dt, [(str(k), k) for k in [m, c] + size])
            self.add(dt, [n, (str(m), m)] + window[0], f"conv(%{x}, %{w}) {{group = {group}, {window[1]}}}")

    def pool(self):
        op, shape = self.r.choice(("max", "sum", "argmax")), self.shape(0, 4)
        ns = self.r.randint(0, len(shape))
        size = [self.r.choice((1, 2, 3, 3, 9)) for _ in range(ns)]
        window = self.slide(shape[len(shape) - ns:], size)
        if window:
            dt = self.any("fib")
            self.add("i64" if op == "argmax" else dt, shape[:len(shape) - ns] + window[0],
                     f"pool_{op}(%{self.operand(dt, shape)}) {{window = {size}, {window[1]}}}")

    def transpose(self):
        shape, dt = self.shape(), self.any("fib")
        perm = list(range(len(shape)))
        self.r.shuffle(perm)
        self.add(dt, [shape[i] for i in perm], f"transpose(%{self.operand(dt, shape)}) {{perm = {perm}}}")

    def slice(self):
        shape, dt = self.shape(), self.any("fib")
        start, step, size = [], [], []
        for text, x in shape:
            s = self.r.choice((1, 1, 2, -1, -3))
            a = self.r.randrange(x) if x else 0
            room = (x - 1 - a) // s + 1 if s > 0 else a // -s + 1
            n = self.r.randint(0, room) if x else 0
            if not text.isdigit() and self.r.random() < 0.5:
                start.append("0"), step.append(1), size.append((text, x))
            else:
                start.append(str(a)), step.append(s), size.append((str(n), n))
        self.add(dt, size, f"slice(%{self.operand(dt, shape)}) {{start = [{','.join(start)}], step = {step}, "
                           f"size = [{','.join(t for t, _ in size)}]}}")

    def reshape(self):
        shape, dt = self.shape(2, 4, sym=False), self.any("fib")
        n = npy.count([k for _, k in shape])
        v = self.operand(dt, shape)
        flat = self.add(dt, [(str(n), n)], f"reshape(%{v}) {{shape = [{n}]}}")
        self.add(dt, [(str(n), n)], f"add(%{flat}, %{flat})" if dt != "bool" else f"not(%{flat})")

    def broadcast(self):
        shape, dt = self.shape(), self.any("fib")
        mine = [d if self.r.random() < 0.6 else ("1", 1) for d in shape][self.r.randint(0, len(shape)):]
        self.add(dt, shape, f"broadcast(%{self.operand(dt, mine)}) {{shape = [{','.join(t for t, _ in shape)}]}}")

    def concat(self):
        shape, dt = self.shape(1, 4), self.any("fib")
        axis = self.r.randrange(len(shape))
        parts = [shape[:axis] + [self.dim()] + shape[axis + 1:] for _ in range(self.r.randint(1, 3))]
        args = [self.operand(dt, s) for s in parts]
        at = [s[axis] for s in parts]
        out = ("+".join(t for t, _ in at), sum(k for _, k in at))
        if all(t.isdigit() for t, _ in at):
            out = (str(out[1]), out[1])
        self.add(dt, shape[:axis] + [out] + shape[axis + 1:],
                 f"concat({', '.join('%' + a for a in args)}) {{axis = {axis}}}")

    def pad(self):
        shape, dt = self.shape(sym=False), self.any("fib")
        lo, hi, mid = ([self.r.choice((0, 0, 1, 2)) for _ in shape] for _ in range(3))
        out = [a + b + (x + (x - 1) * m if x else 0) for (_, x), a, b, m in zip(shape, lo, hi, mid)]
        self.add(dt, [(str(k), k) for k in out], f"pad(%{self.operand(dt, shape)}, %{self.operand(dt, [])}) "
                                                 f"{{lo = {lo}, hi = {hi}, interior = {mid}}}")

    def index(self, shape, extent, beyond=True):
        kind = self.r.choice(("i64", "i32"))
        more = 2 if beyond else 0
        return self.param(kind, shape, lambda n: [self.r.randint(-extent - more, extent - 1 + more) for _ in range(n)])

    def gather(self):
        shape, dt = self.shape(1, 3, 1), self.any("fib")
        axis, idx = self.r.randrange(len(shape)), self.shape(0, 2)
        tested = self.r.random() < 0.4
        i = self.index(idx, shape[axis][1], not tested)
        if tested:
            i = self.add(self.inputs[i].kind, idx, f"within(%{i}) {{size = [{shape[axis][0]}]}}", keep=self.r.random() < 0.3)
        self.add(dt, shape[:axis] + idx + shape[axis + 1:],
                 f"gather(%{self.operand(dt, shape)}, %{i}) {{axis = {axis}}}")

    def elems(self):
        shape, dt = self.shape(1, 3, 1, sym=False), self.any()
        axis = self.r.randrange(len(shape))
        idx = [self.r.randint(0, k + (2 if i == axis else 0)) for i, (_, k) in enumerate(shape)]
        idx = [(str(k), k) for k in idx]
        x, i = self.operand(dt, shape), self.index(idx, shape[axis][1])
        if self.r.random() < 0.4:
            self.add(dt, idx, f"gather_elems(%{x}, %{i}) {{axis = {axis}}}")
        else:
            how = self.r.choice(("none", "add", "mul", "max", "min"))
            self.add(dt, shape, f'scatter_elems(%{x}, %{i}, %{self.operand(dt, idx)}) {{axis = {axis}, reduce = "{how}"}}')

    def nd(self):
        shape, dt = self.shape(1, 4, 1), self.any()
        batch = self.r.randint(0, 1)
        rows, scatter = self.shape(0, 2), self.r.random() < 0.6
        if scatter or batch == len(shape):
            batch = 0
        rows = shape[:batch] + rows
        depth = self.r.randint(0, len(shape) - batch)
        x = self.operand(dt, shape)
        least = min([k for _, k in shape[batch:batch + depth]], default=1)
        i = self.index(rows + [(str(depth), depth)], least)
        if scatter:
            how = self.r.choice(("none", "add", "mul", "max", "min"))
            u = self.operand(dt, rows + shape[depth:])
            self.add(dt, shape, f'scatter_nd(%{x}, %{i}, %{u}) {{reduce = "{how}"}}')
        else:
            self.add(dt, rows + shape[batch + depth:], f"gather_nd(%{x}, %{i}) {{batch = {batch}}}")

    def cum(self):
        shape, dt = self.shape(1, 3), self.any("fib")
        axis, e, v = self.r.randrange(len(shape)), self.r.randint(0, 1), self.r.randint(0, 1)
        op = self.r.choice(("cumsum", "cumprod"))
        self.add(dt, shape, f"{op}(%{self.operand(dt, shape)}) {{axis = {axis}, exclusive = {e}, reverse = {v}}}")

    def topk(self):
        shape, dt = self.shape(1, 3), self.any("fib")
        axis, largest = self.r.randrange(len(shape)), self.r.randint(0, 1)
        k = self.r.randint(0, shape[axis][1])
        k = (str(k), k) if self.r.random() < 0.5 else shape[axis]
        out = shape[:axis] + [k] + shape[axis + 1:]
        x, v, i = self.operand(dt, shape), self.name(), self.name()
        self.lines.append(f"  %{v}: {self.type(dt, out)}, %{i}: {self.type('i64', out)} = topk(%{x}) "
                          f"{{axis = {axis}, k = [{k[0]}], largest = {largest}}}")
        self.keep(v, dt, out)
        self.keep(i, "i64", out)

    def suppress(self):
        b, c, n = self.dim(), self.dim(), self.dim()
        k = n if self.r.random() < 0.5 else self.dim()
        limit = self.param("f32", [], lambda _: [self.r.choice((-1, 0, 0.2, 0.5))])
        most = self.param("i64", [], lambda _: [self.r.randint(0, 20)])
        v = [self.operand("f32", [b, c, n]), self.operand("f32", [b, n, ("4", 4)]), limit, self.operand("f32", []), most]
        kind = self.r.choice(("edges", "corners", "centre"))
        self.add("i64", [b, c, k], f"nms({', '.join('%' + x for x in v)}) {{kind = \"{kind}\", k = [{k[0]}]}}")

    def leaf(self):
        shape = self.shape(1, 3)
        dims = ",".join(t for t, _ in shape)
        self.add("f16", shape, f"iota {{shape = [{dims}], axis = {self.r.randrange(len(shape))}, to = f16}}")
        self.add("f32", shape, f"random {{shape = [{dims}], seed = 7, to = f32}}")
        self.add("i32", [(str(len(shape)), len(shape))], f"dims {{shape = [{dims}], to = i32, rank = 1}}")


OPS = ("map", "cast", "reduce", "arg", "contract", "conv", "pool", "transpose", "slice", "reshape", "broadcast",
       "concat", "pad", "gather", "elems", "nd", "cum", "topk", "suppress", "leaf")


def graph(seed, op, count):
    g = Graph(seed)
    while len(g.results) < count:
        getattr(g, op)()
    return g
