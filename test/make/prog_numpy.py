"""The library of the Python programs that test/unit/back.c writes: the scalar operators of docs/ir.md, in numpy."""
import fractions
import json
import math
import operator
import sys
from functools import reduce
import numpy as np
from numpy import inf, nan, bool_, float16 as f16, float32 as f32, float64 as f64
from numpy import int8 as i8, int16 as i16, int32 as i32, int64 as i64, uint8 as u8, uint16 as u16, uint32 as u32, uint64 as u64

np.seterr(all="ignore")


class Refused(Exception):
    """Raised when a condition of the program is false."""


def op_require(condition, text):
    if not condition:
        raise Refused(text)


def op_data(kind, text):
    return np.frombuffer(bytes.fromhex(text), kind)


def op_room(kind, n):
    return np.zeros(n, kind)


def op_input(x, kind, shape):
    op_require(x.dtype == kind and x.shape == tuple(shape), "an input of another type or shape")
    return np.ascontiguousarray(x).reshape(-1)


def op_output(x, shape):
    return x[:math.prod(shape)].reshape([int(d) for d in shape])


def op_load(x, at, lanes):
    assert 0 <= at and at + lanes <= len(x)
    return x[at] if lanes == 1 else x[at:at + lanes].copy()


def op_store(x, at, value):
    assert 0 <= at and at + np.size(value) <= len(x) and x.dtype == value.dtype
    x[at:at + np.size(value)] = value


def op_cast(x, to, sat=False):
    if to == bool_:
        return x != 0
    if not issubclass(to, np.integer) or (issubclass(x.dtype.type, np.integer) and not sat):
        return x.astype(to)
    lo, hi = np.iinfo(to if sat else i64).min, np.iinfo(to if sat or to == u64 else i64).max

    def one(v):
        v = 0 if v != v else hi if v > hi else lo if v < lo else int(v)
        return u64(v % 2**64).astype(to)
    return one(x) if x.ndim == 0 else np.array([one(v) for v in x])


def op_bitcast(x, to):
    return x.view(to)


def choose(c, a, b):
    return np.where(c, a, b)[()]


op_select = choose
op_add, op_sub, op_mul, op_and, op_or, op_xor, op_not, op_neg, op_abs = (
    operator.add, operator.sub, operator.mul, operator.and_, operator.or_, operator.xor, operator.invert, operator.neg, abs)
op_mod, op_fmod, op_floor, op_ceil, op_round, op_trunc, op_sqrt, op_sign, op_isnan, op_isinf = (
    np.mod, np.fmod, np.floor, np.ceil, np.rint, np.trunc, np.sqrt, np.sign, np.isnan, np.isinf)


def op_div(a, b):
    if a.dtype.kind == "f":
        return a / b
    q = a // b
    return q + ((q * b != a) & ((a < 0) != (b < 0)) & (b != 0)).astype(q.dtype)


def op_recip(a):
    return a.dtype.type(1) / a


def op_max(a, b):
    return choose((b > a) | (b != b), b, a)  # the first of two equal elements (-0, 0)


def op_min(a, b):
    return choose((b < a) | (b != b), b, a)


def op_shl(a, b):
    return choose((b >= 0) & (b < 8 * a.itemsize), a << b, a.dtype.type(0))


def op_shr(a, b):
    last = a.dtype.type(8 * a.itemsize - 1)
    return choose((b >= 0) & (b <= last), a >> b, a >> last if a.dtype.kind == "i" else a.dtype.type(0))


def in_double(f):
    return lambda *a: f(*(x.astype(f64) for x in a)).astype(a[0].dtype)


op_exp, op_log, op_sin, op_cos, op_tan, op_sinh, op_cosh, op_tanh, op_asin, op_acos, op_atan, op_asinh, op_acosh, op_atanh = map(in_double, (
    np.exp, np.log, np.sin, np.cos, np.tan, np.sinh, np.cosh, np.tanh, np.arcsin, np.arccos, np.arctan, np.arcsinh, np.arccosh, np.arctanh))
erf = np.vectorize(math.erf, otypes=[f64])
op_erf = in_double(lambda a: erf(a)[()])
op_exp_nonpos = in_double(np.exp)
op_exp_p1 = in_double(lambda a: 1 + np.exp(a))
op_gelu_x2 = in_double(lambda a: a * (1 + erf(a / math.sqrt(2))))


def op_pow(a, b):
    if a.dtype.kind == "f":
        return in_double(np.power)(a, b)
    if a.ndim:
        return np.array([op_pow(x, y) for x, y in zip(a, b)])
    x, y = int(a), int(b)
    return u64(pow(x, y, 2**64) if y >= 0 else (x ** (-y % 2) if x in (1, -1) else 0) % 2**64).astype(a.dtype)


def exact(a, b, c):
    return float(fractions.Fraction(float(a)) * fractions.Fraction(float(b)) + fractions.Fraction(float(c))) or a * b + c


def op_fma(a, b, c):
    """f32: computes the sum in double, rounded to odd, so that rounding it to f32 is exact."""
    if a.dtype == f64:
        safe = np.isfinite(a * b + c)
        return np.vectorize(lambda s, x, y, z: exact(x, y, z) if s else x * y + z, otypes=[f64])(safe, a, b, c)[()]
    p, c = a.astype(f64) * b.astype(f64), c.astype(f64)
    s = p + c
    part = s - p
    off = (p - (s - part)) + (c - part)
    even = s.view(i64) % 2 == 0
    return choose((off != 0) & np.isfinite(s) & even, np.nextafter(s, choose(off > 0, inf, -inf)), s).astype(f32)


def op_dot_i8x4(a, b, c):
    a, b, c = np.atleast_1d(a), np.atleast_1d(b), np.atleast_1d(c)
    s = c + (a.view(u8).astype(i32) * b.view(i8).astype(i32)).reshape(-1, 4).sum(1, dtype=i32)
    return s if len(s) > 1 else s[0]


def op_dot_i16x2(a, b, c):
    a, b, c = np.atleast_1d(a), np.atleast_1d(b), np.atleast_1d(c)
    s = c + (a.view(i16).astype(i32) * b.view(i16).astype(i32)).reshape(-1, 2).sum(1, dtype=i32)
    return s if len(s) > 1 else s[0]


def op_maddubs(a, b, c):
    a, b, c = np.atleast_1d(a), np.atleast_1d(b), np.atleast_1d(c)
    two = (a.view(u8).astype(i32) * b.view(i8).astype(i32)).reshape(-1, 2).sum(1, dtype=i32).clip(-32768, 32767).astype(i16)
    s = (c.view(i16) + two).view(i32)
    return s if len(s) > 1 else s[0]


def op_psign(a, b):
    a, b = np.atleast_1d(a), np.atleast_1d(b)
    s = (a.view(i8) * np.sign(b.view(i8))).view(i32)
    return s if len(s) > 1 else s[0]


def op_widen_i8x2(a, b):
    bytes_of = np.atleast_1d(a).view(i8).reshape(-1, 4)
    odd = np.atleast_1d(b).astype(np.int64) % 2
    at, lanes = odd[:, None] + [0, 2], np.arange(len(bytes_of))[:, None]
    s = np.ascontiguousarray(bytes_of[lanes, at].astype(i16)).view(i32)[:, 0]
    return s if len(s) > 1 else s[0]


def op_requant(a, b, c):
    m = a.astype(np.int64) * b + 2**31 >> 32
    n = (c & 31).astype(np.int64)
    half = (1 << n) >> 1
    return choose(m < 0, -((half - m) >> n), m + half >> n).astype(i32)


def mix(x):
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93 % 2**64
    x = (x ^ x >> 29) * 0xa0761d6478bd642f % 2**64
    return x ^ x >> 32


def op_random(kind, seed, index):
    """Random numbers of a run with seed 0."""
    digits = np.finfo(kind).nmant + 1
    seed = mix(int(seed) % 2**64 ^ 0x2545f4914f6cdd1d)
    return kind(math.ldexp(mix(mix((int(index) * 0x9e3779b97f4a7c15 + 0x632be59bd9b4e019) % 2**64) ^ seed) >> 64 - digits, -digits))


# Steps of the functions of src/ir/math/quick.def that are not scalar operators
def mask(c):
    return choose(c, u32(2**32 - 1), u32(0))


def op_lt(a, b):
    return mask(a < b)


def op_le(a, b):
    return mask(a <= b)


def op_eq(a, b):
    return mask(a == b)


def op_bits(a):
    return a.view(u32)


def op_float(a):
    return a.view(f32)


def op_lesser(a, b):
    return choose(a < b, a, b)


def op_larger(a, b):
    return choose(a > b, a, b)


op_mad = op_fma


def op_pow2(p, t):
    return np.ldexp(p, op_cast(t - f32(1.5 * 2**23), i32))


def op_farsin(x, y):
    return choose(abs(x) < 2**13, y, op_sin(x))


def op_farcos(x, y):
    return choose(abs(x) < 2**13, y, op_cos(x))


def differ(got, want, rtol, atol):
    """Compares bits, unless a tolerance is given; NaN equals NaN."""
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return f"{got.dtype}{got.shape}, expected {want.dtype}{want.shape}"
    bits = [np.where(x != x, f64(nan), x).tobytes() for x in (got, want)]
    if bits[0] == bits[1] or ((rtol or atol) and np.allclose(got, want, rtol, atol, equal_nan=True)):
        return None
    i = np.flatnonzero(~((got == want) & (np.signbit(got) == np.signbit(want)) | (got != got) & (want != want)))[0]
    return f"element {i}: {got.flat[i]!r}, expected {want.flat[i]!r}"


def main(path):
    """Runs every program of the table and prints the differences."""
    for job in json.load(open(path)):
        program = {}
        with open(job["program"]) as f:
            exec(compile(f.read(), job["program"], "exec"), program)
        got, want = program["run"](dict(np.load(job["inputs"]))), np.load(job["outputs"])
        for name in want:
            text = differ(got[name], want[name], *job["tolerance"])
            if text:
                print(f"{job['name']}: {name}: {text}")


if __name__ == "__main__":
    main(sys.argv[1])
