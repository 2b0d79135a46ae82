"""Programs on vectors, as text: every scalar operator on every type it takes, casts between all types, on special values.

Operators and types are read from src/ir, so new rows are tested without a change here.
"""
import os
import random
import re
from .core import ROOT

LANES = (64, 16, 12, 8, 5, 32, 4, 3)
FLOATS = ["nan", "inf", "-inf", "0.0", "-0.0", "1.0", "-1.0", "0.5", "1.5", "2.5", "-2.5", "0.1", "-0.3", "3.0", "7.75", "-7.25", "12.5", "88.0", "-88.0",
          "127.5", "128.0", "-128.5", "255.5", "256.0", "-129.0", "3e4", "-4e4", "7e4"]
WIDE = ["3e38", "-3e38", "1e-40", "-1e-40", "2147483648.0", "-2147483648.0", "2147483520.0", "4294967296.0", "9.3e18", "-9.3e18", "2e19", "16777217.0"]


def rows():
    """(name, operands, class, result) of every scalar operator."""
    with open(os.path.join(ROOT, "src", "ir", "ops.def")) as f:
        return [(a, int(b), c, d) for a, b, c, d in re.findall(r"^SC\((\w+), *(\d), *(\w+), *(\w+)", f.read(), re.M)]


def types():
    """Name -> (class, bits) of every numeric type."""
    with open(os.path.join(ROOT, "src", "ir", "dtypes.def")) as f:
        found = re.findall(r"^DT\((\w+), *'?(\w)'?, *(\d+)", f.read(), re.M)
    return {n: (c, int(b)) for n, c, b in found if c in "FIUB"}


def literals(name, cls, bits, count, seed):
    r = random.Random(f"{name} {seed}")
    if cls == "B":
        some = ["true", "false"]
    elif cls == "F":
        some = FLOATS + (WIDE if name in ("f32", "f64") else [])
    else:
        lo, hi = (-(1 << bits - 1), (1 << bits - 1) - 1) if cls == "I" else (0, (1 << bits) - 1)
        some = [str(x) for x in {0, 1, 2, 3, 7, hi, lo, hi - 1, lo + 1, -1, -2, -3, hi // 3, hi // 2 + 1} if lo <= x <= hi]
    return [r.choice(some) for _ in range(count)]


def takes(dtype, cls, wanted):
    if wanted == "I32":
        return dtype == "i32"
    return {"NUM": "FIU", "FLT": "F", "INT": "IU", "BITS": "IUB", "BOOL": "B", "ANY": "FIUB"}[wanted].find(cls) >= 0


class Writer:
    """A kernel for each expression, a row of an output for each result."""

    def __init__(self, name, lanes):
        self.name, self.lanes = name, lanes
        self.outs, self.body = {}, []

    def add(self, dtype, expr, label):
        row = self.outs.setdefault(dtype, 0)
        self.outs[dtype] += 1
        self.body.append(f'kernel "{label}" {{\n  o_{dtype}[{row}, 0:{self.lanes}] = {expr}\n}}')

    def text(self, consts):
        outs = [f"buf o_{t}: out {t}[{n},{self.lanes}]" for t, n in self.outs.items()]
        return "\n".join([f"prog {self.name}", *consts, *outs, *self.body]) + "\n"


def consts(dtype, cls, bits):
    out = []
    for i, name in enumerate("xyz"):
        values = literals(dtype, cls, bits, 64, i)
        if name == "z" or dtype == "f4e2m1":  # results compared as bits; the sign of NaN is unspecified
            values = [v.replace("nan", "1.25") for v in values]
        if cls == "F" and dtype not in ("f32", "f64"):  # only some numbers fit this type: cast them here
            out.append(f"buf {name}_wide: const f32[64] = {{{', '.join(values)}}}")
            out.append(f"buf {name}: temp {dtype}[64]")
        else:
            out.append(f"buf {name}: const {dtype}[64] = {{{', '.join(values)}}}")
    out.append("buf flag: const bool[64] = {" + ", ".join(literals("bool", "B", 1, 64, 3)) + "}")
    return out


def fill(dtype, cls):
    if cls != "F" or dtype in ("f32", "f64"):
        return []
    return ['kernel "fill" {\n  for i in 0..64 {\n' + "\n".join(f"    {n}[i] = cast.{dtype}({n}_wide[i])" for n in "xyz") + "\n  }\n}"]


# f4e2m1 has no NaN; the sign of the zero instead is unspecified, so operators that make NaN are omitted.
MAKES_NAN = {"div", "mod", "fmod", "pow", "sqrt", "log", "asin", "acos", "acosh", "atanh"}


def operators(dtype, lanes):
    cls, bits = types()[dtype]
    w = Writer(f"ops_{dtype}_{lanes}", lanes)
    w.body += fill(dtype, cls)
    part = [f"{n}[0:{lanes}]" for n in "xyz"]
    for op, n, wanted, result in rows():
        if op in ("cast", "bitcast") or not takes(dtype, cls, wanted) or (dtype == "f4e2m1" and op in MAKES_NAN):
            continue
        if op == "select":
            w.add(dtype, f"select(flag[0:{lanes}], {part[0]}, {part[1]})", op)
            if takes(dtype, cls, "NUM"):
                w.add(dtype, f"select(and(not({part[0]} < {part[1]}), or(eq({part[1]}, {part[2]}), flag[0:{lanes}])), {part[0]}, {part[1]})", "masks")
            continue
        infix = {"add": "+", "sub": "-", "mul": "*", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}.get(op)
        call = f"{part[0]} {infix} {part[1]}" if infix else f"{op}({', '.join(part[:n])})"
        w.add("bool" if result == "pred" else dtype, call, op)
    if dtype == "f32":
        for to, moved in (("u8", 0), ("u8", 100), ("u8", 255), ("i8", 0), ("i8", -128), ("i8", 127)):
            y = f"round({part[0]} * {part[2]})"
            byte = f"cast.{to}.sat({y} + splat.{lanes}({moved}.0))" if moved else f"cast.{to}.sat({y})"
            w.add(to, byte, "quantize")
            less = f"cast.i32({byte}) - splat.{lanes}({moved}:i32)" if moved else f"cast.i32({byte})"
            w.add("f32", f"cast.f32({less})", "quantize and back")
    if cls in "IU":
        for k in (0, 1, bits - 1, bits):
            w.add(dtype, f"shr({part[0]}, splat.{lanes}({k}:{dtype}))" if k < bits or cls == "U" else part[0], "shift")
            w.add(dtype, f"shl({part[0]}, splat.{lanes}({k}:{dtype}))" if k < 2 else part[1], "shift")
    return w.name, w.text(consts(dtype, cls, bits))


def casts(dtype, lanes):
    all_types = types()
    cls, bits = all_types[dtype]
    w = Writer(f"casts_{dtype}_{lanes}", lanes)
    w.body += fill(dtype, cls)
    for to, (_, b) in all_types.items():
        if dtype == "u64" and all_types[to][0] == "F" and to not in ("f32", "f64"):
            continue  # refused
        if to == "f4e2m1" and cls == "F":
            continue  # NaN becomes a zero of unspecified sign
        w.add(to, f"cast.{to}(x[0:{lanes}])", "cast to " + to)
        w.add(to, f"cast.{to}.sat(y[0:{lanes}])", "saturating cast to " + to)
        if (b, dtype == "bool", to == "bool") == (bits, False, False) and to != dtype:
            w.add(to, f"bitcast.{to}(z[0:{lanes}])", "bitcast to " + to)
    return w.name, w.text(consts(dtype, cls, bits))


EDGES = ["88.72283", "88.72284", "89.0", "-87.3365", "-87.5", "-103.2", "-103.9", "-104.0", "-104.1", "1e-45", "-1e-45", "1.1754944e-38", "1.1754942e-38",
         "0.70710677", "0.7071068", "1.4142135", "1.4142137", "0.99999994", "1.0000001", "9.0", "9.000001", "-9.5", "5.75", "-5.7", "3.93", "3.9300003", "-4.5", "1e-4", "-1e-20",
         "0.7853982", "1.5707964", "3.1415927", "-6.2831855", "4008.15", "8191.9995", "8192.0", "-8192.0", "1e30"]


def fast(kind, lanes):
    """Functions that differ under `math fast` or `math fused`: on edge values, 512 random bit patterns and 512 values within 2^-8..2^8; on
    vectors, scalars and a narrow type."""
    some = FLOATS + WIDE + EDGES
    some += ["0.0"] * (-len(some) % 64)
    n, more = len(some), 1024
    total = n + more - more % lanes - n % lanes
    names = ("exp", "exp_p1", "exp_nonpos", "log", "sin", "cos", "tanh", "gelu_x2", "erf")
    out = [f"prog fast_{lanes}", f"math {kind}", f"buf edge: const f32[{n}] = {{{', '.join(some)}}}", f"buf x: temp f32[{n + more}]",
           f"buf y: out f32[{len(names)},{n + more}]", f"buf z: out f32[{len(names)},{n + more}]", f"buf h: out f16[{len(names)},{lanes}]",
           'kernel "fill" {', f"  for i in 0..{n} {{\n    x[i] = edge[i]\n  }}", "  for i in 0..512 {",
           "    let a: u32 = cast.u32(i) * 2654435761:u32", "    let b: u32 = xor(a, shr(a, 15:u32)) * 739982445:u32",
           f"    x[i + {n}] = bitcast.f32(b)", f"    x[i + {n + 512}] = bitcast.f32(or(and(b, 2155872255:u32), (119:u32 + and(shr(b, 23:u32), 15:u32)) * 8388608:u32))", "  }", "}"]
    for row, f in enumerate(names):
        out += [f'kernel "{f} of {lanes}" {{', f"  for i in 0..{total} step {lanes} {{", f"    y[{row}, i:{lanes}] = {f}(x[i:{lanes}])", "  }",
                f"  for i in {total}..{n + more} {{", f"    y[{row}, i] = {f}(x[i])", "  }", "}",
                f'kernel "{f} of one" {{', f"  for i in 0..{n + more} {{", f"    z[{row}, i] = {f}(x[i])", "  }", "}",
                f'kernel "{f} of f16" {{', f"  h[{row}, 0:{lanes}] = {f}(cast.f16(x[{n + 512}:{lanes}]))", "}"]
    return f"fast_{lanes}", "\n".join(out) + "\n"


def all_programs():
    """(name, text): two numbers of lanes for each type."""
    out = []
    for i, dtype in enumerate(types()):
        narrow = types()[dtype][0] == "F" and dtype not in ("f32", "f64")  # long functions, lane by lane: few lanes
        choice = [n for n in LANES if n <= 16] if narrow else LANES
        for make in (operators, casts):
            for k in range(2):
                out.append(make(dtype, choice[(2 * i + k) % len(choice)]))
    return out
