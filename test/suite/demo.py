"""`ingot demo`: the built-in model classifies as many held-out digits correctly as after training, on every engine.

The drawing is ASCII unless the locale is UTF-8, and has no escapes unless it goes to a terminal.
"""
import os
from lib.core import ENGINES, ROOT, Fail, Test, explain, run

CHECK = "*"

LIMIT = 120
SIZES = {"digits.onnx": 200 * 1024, "digits_test.bin": 200 * 1024}


def demo(env, *args, locale="C"):
    # Terminal settings must not influence the test.
    plain = {"LC_ALL": locale, "TERM": "xterm-256color", "NO_COLOR": ""}
    return run([env.need_ingot(), "demo", *args], LIMIT, env=plain)


def accuracy(env, engine):
    got = demo(env, "--engine", engine)
    if got.rc or got.timed_out:
        raise Fail(f"{explain(got)}: {got.text()}")
    lines = got.out.decode().strip().splitlines()
    if "357 of 360 right: 99.17 %" not in lines or not any(x.startswith(f"engine {engine}: ") for x in lines):
        raise Fail(f"the last lines are {lines[-3:]}")


def drawing(env):
    plain, blocks = demo(env).out, demo(env, locale="C.UTF-8").out.decode()
    if not plain.isascii() or b"\033" in plain:
        raise Fail("characters other than ASCII in the C locale, or escapes in a pipe")
    if "\u2588" not in blocks or "\033" in blocks:
        raise Fail("no half blocks in a UTF-8 locale, or escapes in a pipe")
    # Times differ between runs, pictures do not.
    flat = blocks.translate({0x2580: "'", 0x2584: ".", 0x2588: "#"})
    if flat.splitlines()[:-1] != plain.decode().splitlines()[:-1]:
        raise Fail("the two drawings differ by more than their characters")
    if max(map(len, blocks.splitlines())) > 80:
        raise Fail("wider than 80 columns")


def usage(env):
    for args in (["--nothing"], ["file.onnx"], ["--engine", "steam"]):
        got = demo(env, *args)
        if got.rc != 2 or got.out or not got.err:
            raise Fail(f"{' '.join(args)}: {explain(got)}, expected exit 2 with a message alone")


def sizes(env):
    for name, most in SIZES.items():
        size = os.path.getsize(os.path.join(ROOT, "models", name))
        if size > most:
            raise Fail(f"models/{name} has {size} bytes, more than {most}")


def tests(env):
    found = [Test(f"demo/{engine}", lambda e=engine: accuracy(env, e), cost=5) for engine in (*ENGINES, "ref64")]
    return found + [Test("demo/drawing", lambda: drawing(env), cost=5), Test("demo/usage", lambda: usage(env)),
                    Test("demo/sizes", lambda: sizes(env))]
