"""Computes every constant of src/ir/math/mathlib*.h: python3 tools/mathfit.py [--check] [NAME...]

Needs mpmath. Polynomials and quotients of polynomials are fitted by the Remez exchange algorithm at 60 digits and then
rounded to double. The second column is the largest error of the rounded polynomial, relative to the function that it
approximates. Constants whose names end in q, u or ` s` are rounded to float. Tables and constants split into several parts
are computed directly. --check reads the headers and fails if a constant is missing from all of them.
"""
import os
import re
import struct
import sys
from mpmath import mp, mpf

mp.dps = 60
IR = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src", "ir", "math")


def hexa(x):
    """The double nearest to x, in C's notation and without trailing zeros."""
    x = float(x)
    if x == int(x) and abs(x) < 1e6:
        return f"{x:.1f}"
    head, exp = x.hex().split("p")
    return f"{head.rstrip('0').rstrip('.')}p{int(exp)}"


def single(x):
    """The float nearest to x."""
    return mpf(struct.unpack("f", struct.pack("f", float(x)))[0])


def solve(points, f, weight, degree):
    """Coefficients and level e such that weight (f - poly) is +e, -e, +e ... at the points."""
    n = degree + 2
    a, b = mp.matrix(n, n), mp.matrix(n, 1)
    for i, x in enumerate(points):
        for j in range(degree + 1):
            a[i, j] = x**j
        a[i, degree + 1] = (-1) ** i / weight(x)
        b[i] = f(x)
    got = mp.lu_solve(a, b)
    return [got[j] for j in range(degree + 1)], got[degree + 1]


def value(coefs, x):
    y = mpf(0)
    for c in reversed(coefs):
        y = y * x + c
    return y


def peaks(err, n):
    """Positions of the largest error in each interval of one sign: n of them, or fewer."""
    runs = [[0]]
    for i in range(1, len(err)):
        if (err[i] > 0) == (err[runs[-1][-1]] > 0):
            runs[-1].append(i)
        else:
            runs.append([i])
    tops = [max(run, key=lambda i: abs(err[i])) for run in runs]
    while len(tops) > n:
        tops.pop(0 if abs(err[tops[0]]) < abs(err[tops[-1]]) else -1)
    return tops


def ratio(f, hi, np, nq):
    """Polynomials p and q of degrees np and nq in z, both 1 at 0, with the least maximum of |p / (q f) - 1| on (0, hi]."""
    n = np + nq + 1
    grid = [mpf(hi) * (1 - mp.cos(mp.pi * i / (40 * n))) / 2 for i in range(1, 40 * n + 1)]
    want = [f(z) for z in grid]
    points = [40 * (i + 1) - 1 for i in range(n)]
    p, q = [mpf(1)], [mpf(1)] + [mpf(0)] * nq
    for _ in range(30):
        level = mpf(0)
        for _ in range(20):  # the equations contain level * q: use q of the previous round
            a, b = mp.matrix(n, n), mp.matrix(n, 1)
            for i, k in enumerate(points):
                z, y = grid[k], want[k]
                for j in range(np):
                    a[i, j] = z ** (j + 1)
                for j in range(nq):
                    a[i, np + j] = -y * z ** (j + 1)
                a[i, n - 1] = -((-1) ** i) * y * value(q, z)
                b[i] = y - 1
            got = mp.lu_solve(a, b)
            q = [mpf(1)] + [got[np + j] for j in range(nq)]
            last, level = level, got[n - 1]
            if abs(level - last) < abs(level) * mpf("1e-8"):
                break
        p = [mpf(1)] + [got[j] for j in range(np)]
        err = [value(p, z) / (value(q, z) * y) - 1 for z, y in zip(grid, want)]
        tops = peaks(err, n)
        if len(tops) < n or max(abs(e) for e in err) < abs(level) * mpf("1.02"):
            break
        points = tops
    return p, q, max(abs(e) for e in err)


def fit(f, weight, lo, hi, degree):
    """The polynomial of that degree with the least maximum of |weight (f - poly)| on [lo, hi]."""
    lo, hi = mpf(lo), mpf(hi)
    n = degree + 2
    grid = [(lo + hi) / 2 - (hi - lo) / 2 * mp.cos(mp.pi * i / (30 * n)) for i in range(30 * n + 1)]
    want = [f(x) for x in grid]
    wts = [weight(x) for x in grid]
    points = [grid[30 * n * i // (n - 1)] for i in range(n)]
    coefs = []
    for _ in range(12):
        coefs, level = solve(points, f, weight, degree)
        err = [w * (y - value(coefs, x)) for x, y, w in zip(grid, want, wts)]
        tops = peaks(err, n)
        if len(tops) < n:
            break
        points = [grid[i] for i in tops]
        if max(abs(e) for e in err) < abs(level) * mpf("1.01"):
            break
    rounded = [mpf(float(c)) for c in coefs]
    worst = max(abs(w * (y - value(rounded, x))) for x, y, w in zip(grid, want, wts))
    return [float(c) for c in coefs], worst


TINY = mpf(10) ** -12  # stands for 0 where a quotient has no value there
root = mp.sqrt


def one(x):
    return mpf(1)


def erf_odd(z):
    return mp.erf(root(z)) / root(z)


def gelu_root(t):
    return mp.erfc(t / root(2)) ** mpf("0.25")


# name: f, weight, interval, degree. The comment gives the identity in which the polynomial p stands.
POLY = {
    # exp(r) = 1 + r + r^2 p(r)
    "exp": (lambda r: (mp.expm1(r) - r) / r**2, lambda r: r**2 / mp.exp(r), -0.34658, 0.34659, 10),
    # log(1+r) = r - r^2/2 + r^3 p(r)
    "log": (lambda r: (mp.log1p(r) - r + r**2 / 2) / r**3, lambda r: r**3 / mp.log1p(r), -0.0079, 0.00794, 6),
    # sin(x) = x + x z p(z), z = x^2
    "sin": (lambda z: (mp.sin(root(z)) / root(z) - 1) / z, lambda z: z * root(z) / mp.sin(root(z)), TINY, 0.6169, 5),
    # cos(x) = 1 - z/2 + z^2 p(z)
    "cos": (lambda z: (mp.cos(root(z)) - 1 + z / 2) / z**2, lambda z: z**2 / mp.cos(root(z)), TINY, 0.6169, 5),
    # atan(t) = t + t z p(z)
    "atan": (lambda z: (mp.atan(root(z)) / root(z) - 1) / z, lambda z: z * root(z) / mp.atan(root(z)), TINY, mpf(1) / 250, 5),
    # asin(t) = t + t z p(z)
    "asin": (lambda z: (mp.asin(root(z)) / root(z) - 1) / z, lambda z: z * root(z) / mp.asin(root(z)), TINY, 0.25, 12),
    # sinh(x) = x + x z p(z), |x| < 1
    "sinh": (lambda z: (mp.sinh(root(z)) / root(z) - 1) / z, lambda z: z * root(z) / mp.sinh(root(z)), TINY, 1.0, 7),
    # tanh(x) = x + x z p(z), |x| < 0.55
    "tanh": (lambda z: (mp.tanh(root(z)) / root(z) - 1) / z, lambda z: z * root(z) / mp.tanh(root(z)), TINY, 0.3026, 10),
    # erf(x) = x + x p(z), |x| < 0.8125
    "erf": (lambda z: erf_odd(z) - 1, lambda z: 1 / erf_odd(z), TINY, 0.6602, 12),
    # exp(r) = 1 + r p(r), for float results
    "expf": (lambda r: mp.expm1(r) / r, lambda r: r / mp.expm1(r), -0.34658, 0.34659, 9),
    # log((1+s)/(1-s)) = 2s + s z p(z), z = s^2, for float results
    "logf": (lambda z: (2 * mp.atanh(root(z)) / root(z) - 2) / z, lambda z: z * root(z) / mp.atanh(root(z)) / 2, TINY, 0.02945, 6),
    # sin(x) = x + x z p(z), cos(x) = 1 + z p(z), for float results
    "sinf": (lambda z: (mp.sin(root(z)) / root(z) - 1) / z, lambda z: z * root(z) / mp.sin(root(z)), TINY, 0.6169, 4),
    "cosf": (lambda z: (mp.cos(root(z)) - 1) / z, lambda z: z / mp.cos(root(z)), TINY, 0.6169, 4),
    # atan(t) = t + t z p(z), |t| <= 1, for float results
    "atanf": (lambda z: (mp.atan(root(z)) / root(z) - 1) / z, lambda z: z * root(z) / mp.atan(root(z)), TINY, 1.0, 14),
    # asin(t) = t + t z p(z), |t| <= 1/2, for float results
    "asinf": (lambda z: (mp.asin(root(z)) / root(z) - 1) / z, lambda z: z * root(z) / mp.asin(root(z)), TINY, 0.25, 8),
    # erf(x) = x p(u), u = x^2/8 - 1, |x| <= 4, for float results
    "erff": (lambda u: erf_odd(8 + 8 * u), lambda u: 1 / erf_odd(8 + 8 * u), TINY - 1, 1.0, 23),
    # exp(r) = 1 + r + r^2 p(r)
    "expq": (lambda r: (mp.expm1(r) - r) / r**2, lambda r: r**2 / mp.exp(r), -0.34658, 0.34659, 4),
    "exp1u": (lambda r: (mp.expm1(r) - r) / r**2, lambda r: r**2 / mp.exp(r), -0.34658, 0.34659, 3),
    # erfc(t / sqrt 2) = (1 + t p(t))^4
    "gelu_x2u": (lambda t: (gelu_root(t) - 1) / t, lambda t: 4 * gelu_root(t) ** 3 * t, TINY, 5.75, 7),
    # log((1+s)/(1-s)) = 2s + s z p(z), z = s^2
    "logq": (lambda z: (2 * mp.atanh(root(z)) / root(z) - 2) / z, lambda z: z * root(z) / mp.atanh(root(z)) / 2, TINY, 0.02945, 2),
    # sin(x) = x + x z p(z), cos(x) = 1 - z/2 + z^2 p(z)
    "sinq": (lambda z: (mp.sin(root(z)) / root(z) - 1) / z, lambda z: z * root(z) / mp.sin(root(z)), TINY, 0.6169, 2),
    "cosq": (lambda z: (mp.cos(root(z)) - 1 + z / 2) / z**2, lambda z: z**2 / mp.cos(root(z)), TINY, 0.6169, 2),
    # erf(x) = 1 - exp(-x p(x)), 0 <= x < 3.93
    "erf s": (lambda x: -mp.log(mp.erfc(x)) / x, lambda x: mp.erfc(x) * x / mp.erf(x), TINY, 3.93, 8),
}

# name: f, end of the interval, degrees, factor. x p(z) / q(z), z = x^2; p is multiplied by the factor.
RATIO = {
    "tanhq": (lambda z: mp.tanh(root(z)) / root(z), mpf("9.02") ** 2, 4, 4, mpf(1)),
    "erfq": (lambda z: erf_odd(z) * mp.sqrt(mp.pi) / 2, mpf("3.93") ** 2, 5, 5, 2 / mp.sqrt(mp.pi)),
}


def parts(x, bits, whole=mp.nint):
    """x as a sum: part i of all but the last is a multiple of 2^-bits[i]."""
    out = []
    for b in bits:
        p = whole(x * mpf(2) ** b) / mpf(2) ** b
        out.append(p)
        x -= p
    return out + [mpf(float(x))]


def pieces(x, bits, count):
    """x as a sum of numbers with the given bits, and a remainder."""
    out = []
    for _ in range(count):
        grain = mpf(2) ** (mp.floor(mp.log(x, 2)) - bits + 1)
        out.append(mp.floor(x / grain) * grain)
        x -= out[-1]
    return out + [x]


def log_table():
    """1/c, rounded to 12 bits, and -log of it in two parts for the 64 intervals of [0x3fe6a000..., twice that)."""
    rows = []
    for i in range(64):
        def at(j):  # the number whose code is 0x3fe6a00000000000 + j 2^46
            code = 0x3FE6A00000000000 + (j << 46)
            return mpf((code & ((1 << 52) - 1)) + (1 << 52)) * mpf(2) ** ((code >> 52) - 1075)
        inv = mp.nint(2 / (at(i) + at(i + 1)) * 2048) / 2048
        if at(i) <= 1 < at(i + 1):
            inv = mpf(1)
        rows += [inv, *parts(-mp.log(inv), [42])]
    return rows


ERF_BREAKS = [0.8125 + 0.578125 * i for i in range(10)]  # erf rounds to 1 from 5.93 on


def erf_rows():
    """Polynomials for 1 - erf(mid + t) on 9 equal intervals above 0.8125."""
    rows, worst = [], mpf(0)
    for lo, hi in zip(ERF_BREAKS, ERF_BREAKS[1:]):
        mid, half = mpf(lo + hi) / 2, mpf(hi - lo) / 2
        coefs, err = fit(lambda t: mp.erfc(mid + t), one, -half, half, 15)
        rows += coefs
        worst = max(worst, err)
    return rows, worst


def two_over_pi(bits, width):
    n = int(mp.floor(2 / mp.pi * mpf(2) ** bits))
    return [hex(n >> (bits - width * (i + 1)) & ((1 << width) - 1)) for i in range(bits // width)]


def constants():
    mp.dps = 420
    big = two_over_pi(64 * 19, 64), two_over_pi(32 * 7, 32)
    mp.dps = 60
    return {
        "ln2": parts(mp.log(2), [42]),
        "1/ln2": [1 / mp.log(2)],
        "pi/2 in two": parts(mp.pi / 2, [52]),
        "2/pi": [2 / mp.pi],
        "pi/2 in two scaled": [mp.pi / 2 / mpf(2) ** 64],
        "pi/2 in four": parts(mp.pi / 2, [33, 66, 99]),
        "pi/2 for float": parts(mp.pi / 2, [33], mp.floor),  # a lower part above 0 keeps sin(-0) = -0
        "ln2 q": parts(mp.log(2), [16]),
        "ln2 u": [mp.log(2)],
        "1/ln2 q": [1 / mp.log(2)],
        "2/pi q": [2 / mp.pi],
        "pi/2 q": pieces(mp.pi / 2, 11, 4),
        "pi/2 s": [mp.pi / 2 / mpf(2) ** 64],
        "2/pi, words of 64 bits": big[0],
        "2/pi, words of 32 bits": big[1],
        "log table": log_table(),
        "atan table": [y for j in range(9) for y in (lambda v: (v, v - mpf(float(v))))(mp.atan(mpf(j) / 8))],
    }


def emit(name, err, values):
    if name.endswith(("q", "u", " s")):
        text = [hexa(single(v)) + "f" for v in values]
    else:
        text = [v if isinstance(v, str) else hexa(v) for v in values]
    print(f"{name}: {len(text)} numbers" + (f", error 2^{float(mp.log(err, 2)):.1f}" if err else ""))
    for i in range(0, len(text), 4):
        print("  " + ", ".join(text[i:i + 4]) + ",")
    return text


def main():
    names = [a for a in sys.argv[1:] if not a.startswith("--")]
    numbers = []
    for name, (f, weight, lo, hi, degree) in POLY.items():
        if not names or name in names:
            coefs, err = fit(f, weight, lo, hi, degree)
            numbers += emit(name, err, coefs)
    for name, (f, hi, np, nq, factor) in RATIO.items():
        if not names or name in names:
            p, q, err = ratio(f, hi, np, nq)
            numbers += emit(name, err, [c * factor for c in p] + q)
    if not names or "erf_rows" in names:
        rows, err = erf_rows()
        numbers += emit("erf_rows", err, rows)
    for name, values in constants().items():
        if not names or name in names:
            numbers += emit(name, None, values)
    if "--check" in sys.argv:
        have = set()
        for name in ("mathlib.h", "mathlibd.h", "mathlibf.h", "mathlibq.h", "mathlibs.h", "quick.def"):
            with open(os.path.join(IR, name), encoding="utf-8") as f:
                have.update(re.findall(r"[\w.]+(?:(?<=p)-\d+f?)?", f.read()))
        lost = [x for x in numbers if x.lstrip("-") not in have and x not in ("0.0", "1.0", "0.0f", "1.0f")]
        sys.exit("not in the headers: " + " ".join(lost) if lost else 0)


main()
