"""JSON texts read by src/io/json.c and by Python's json: the same values, or both refuse.

The texts are generated: extreme values, duplicate keys, escapes, spaces, and each text with a random byte changed.
"""
import json
import os
import random
import struct

from lib.core import ROOT, Fail, Skip, Test, run

COUNT = 3000


def text_of(rng):
    pool = ["a", "\\n", "\\u00e9", "é", "\\ud83d\\ude42", "🙂", "\\\"", "\\\\", "\\/", "\u2028", "\\u0000", " ", "北", "\\b\\f\\r\\t"]
    return '"' + "".join(rng.choice(pool) for _ in range(rng.randrange(4))) + '"'


def number(rng):
    return rng.choice(["0", "-0", "1", "-1.5", "1e5", "1E-400", "1e400", "0.1", "9223372036854775807", "9223372036854775808",
                       "-9223372036854775808", "-9223372036854775809", "1" * 100, "NaN", "Infinity", "-Infinity", "123456789.125e-3",
                       str(rng.randrange(-10**6, 10**6)), repr(rng.random())])


def value(rng, depth):
    kind = rng.randrange(7 if depth else 4)
    space = rng.choice(["", "", " ", "\n", "\t\r"])
    if kind < 2:
        return number(rng) + space
    if kind == 2:
        return text_of(rng) + space
    if kind == 3:
        return rng.choice(["null", "true", "false"])
    items = [value(rng, depth - 1) for _ in range(rng.choice([0, 1, 2, 3, 12]))]
    if kind == 4:
        return f"[{space}" + ("," + space).join(items) + "]"
    return "{" + space + ",".join(f"{text_of(rng)}{space}:{v}" for v in items) + "}"


def broken(rng, text):
    raw = bytearray(text.encode())
    if raw:
        at = rng.randrange(len(raw))
        if rng.random() < 0.5:
            del raw[at]
        else:
            raw[at] = rng.choice(b'{}[]",:\\0e-.\n\xc3\x80a')
    return bytes(raw)


def form(v):
    """The line that test/unit/json.c prints."""
    if v is None:
        return "N"
    if isinstance(v, bool):
        return "T" if v else "F"
    if isinstance(v, int) and -2**63 <= v < 2**63:
        return str(v)
    if isinstance(v, (int, float)):
        f = float(v)
        return "f" + ("nan" if f != f else "inf" if f == float("inf") else "-inf" if f == -float("inf") else exact(f))
    if isinstance(v, str):
        return "s" + v.encode().hex()
    if isinstance(v, list):
        return "[" + ",".join(form(x) for x in v) + "]"
    return "{" + ",".join(form(k) + "," + form(x) for k, x in v.items()) + "}"


def exact(f):
    """The text of printf's %a."""
    mantissa, _, exponent = f.hex().partition("p")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa}p{exponent}"


def members(pairs):
    """Checks an object; fails on lone surrogates, also in those that a later duplicate replaces."""
    form([[k, v] for k, v in pairs])
    return dict(pairs)


def expected(raw):
    """None: refused; Python accepts lone surrogates, which UTF-8 cannot represent."""
    try:
        return form(json.loads(raw.decode(), object_pairs_hook=members))
    except (ValueError, UnicodeError):
        return None


def check(env, seed):
    program = os.path.join(ROOT, "build", "unit", "json")
    if not os.path.exists(program):
        raise Skip("build/unit is not built")
    rng = random.Random(seed)
    texts = [value(rng, 4).encode() for _ in range(COUNT)]
    texts += [broken(rng, t.decode()) for t in texts]
    path = os.path.join(env.scratch("json"), f"{seed}.bin")
    with open(path, "wb") as f:
        for t in texts:
            f.write(struct.pack("<I", len(t)) + t)
    got = run([program, path], 60)
    lines = got.out.decode().split("\n")[:-1]
    if got.rc or len(lines) != len(texts):
        raise Fail(f"exit {got.rc}, {len(lines)} lines for {len(texts)} texts")
    for t, line in zip(texts, lines):
        want = expected(t) or "error 4"
        if line != want:
            raise Fail(f"{t!r}: {line}, Python {want}")


def tests(env):
    return [Test(f"json/python{seed}", lambda s=seed: check(env, s), cost=2) for seed in (1, 2)]
