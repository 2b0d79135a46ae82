"""--bake-prompt: a model with a built-in system message gives the same bits as one that receives the message, and reads fewer
tokens.

Also with another message, after :reset, as a library, and with a KV cache computed without a C compiler.
States of a program may start with values other than zero.
"""
import ctypes
import os
import re
import threading
import zlib

from lib.core import ROOT, Fail, Test, explain, run, tail, want
from suite.play import LIMIT, made, play

PROMPT = "be brief"


def prompt(env, text=PROMPT + "\n"):
    """Writes a file atomically, because tests run concurrently."""
    path = os.path.join(env.scratch("bake", "prompt"), f"{zlib.crc32(text.encode()):08x}.txt")
    part = f"{path}.{threading.get_ident()}"
    with open(part, "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(part, path)
    return path


def tokens(got):
    return [int(n) for n in re.findall(r"(\d+) tokens in", got.err.decode())]


def answers(env):
    """Conversations, a restarted one, and a message other than the built-in one."""
    how = ("--temperature", "3", "--top-k", "0", "--seed", "7", "--max-tokens", "5")
    for stdin in (b"ab\ncd\n", b"\tab\n:reset\nab\nx\n"):
        told = play(env, made(env), *how, "--system", PROMPT, stdin=stdin)
        baked = play(env, made(env), *how, "--bake-prompt", prompt(env), stdin=stdin)
        want(baked.out == told.out and len(told.out) > 8, f"{baked.out!r} is not {told.out!r}")
        before, now = tokens(told), tokens(baked)
        want(now[0] <= before[0] - len(PROMPT) and now[1:] != before or stdin[0] == 97, f"tokens that were read: {now}, without baking {before}")
    other = play(env, made(env), *how, "--system", "be loud", "-p", "ab")
    want(play(env, made(env), *how, "--system", "be loud", "--bake-prompt", prompt(env), "-p", "ab").out == other.out, "another message of the system")


def window(env):
    """Layers with a window overwrite old positions: a conversation longer than the window cannot return to the built-in prompt."""
    model, long = os.path.join(os.path.dirname(made(env)), "window.gguf"), "be as brief as anybody ever was here"
    how = ("--temperature", "0", "--max-tokens", "3")
    baked = ingot_program(env, model, "--bake-prompt", prompt(env, long), "--chunk", "4")
    told = ingot_program(env, model, "--chunk", "4")
    for words in (("--system", long), ("--system", "be as br")):
        same = words[1] == long
        one, two = play(env, None, *how, *words, "-p", "ab", program=told), play(env, None, *how, *(() if same else words), "-p", "ab", program=baked)
        want(one.out == two.out, f"{words}: {two.out!r} is not {one.out!r}")


def ingot_program(env, model, *args):
    path = os.path.join(env.scratch("bake", "window"), "baked" if "--bake-prompt" in args else "told")
    ingot(env, "build", model, "-o", path, "--march", "scalar", "--context", "64", "--quiet", *args)
    return path


def ingot(env, *args, rc=0, cc=None):
    got = run([env.need_ingot(), *args], LIMIT, env={"CC": cc} if cc else None)
    if got.rc != rc:
        raise Fail(f"{' '.join(args)}: {explain(got)}: {tail(got.text(), 4)}")
    return got.text()


def library(env):
    """After a reset the built-in ids are in the cache: the logits after them have the same bits."""
    work = env.scratch("bake", "library")
    ids = [int(x) for x in run([env.need_ingot(), "tokenize", made(env), "--special", "--bare", "--text", f"<s>{PROMPT}<end><u>hello<end><a>"], LIMIT).out.split()]
    logits = {}
    for name, more in {"cold": [], "warm": ["--bake-prompt", prompt(env), "--weights", "file"]}.items():
        path = os.path.join(work, name + ".so")
        ingot(env, "build", made(env), "-o", path, "--march", "scalar", "--context", "64", "--chunk", "4", "--quiet", "--name", "m", *more)
        head = open(path[:-3] + ".h", encoding="utf-8").read()
        n = int((re.search(r"M_BAKED (\d+)", head) or (0, 0))[1])
        want((n > len(PROMPT)) == (name == "warm"), f"{name}: {n} ids are in the cache")
        lib = ctypes.CDLL(path)
        memory = ctypes.create_string_buffer(b"\xa5" * (int(re.search(r"M_ARENA_BYTES (\d+)", head)[1]) + 64))
        arena = ctypes.c_void_p(ctypes.addressof(memory) + -ctypes.addressof(memory) % 64)
        lib.m_position.restype = ctypes.c_int64
        lib.m_reset(arena)
        want(lib.m_position(arena) == n, "the position after a reset")
        out = (ctypes.c_float * int(re.search(r"M_VOCAB (\d+)", head)[1]))()
        want(lib.m_prefill(arena, (ctypes.c_int32 * (len(ids) - n))(*ids[n:]), ctypes.c_size_t(len(ids) - n), out) == 0, "prefill")
        logits[name] = bytes(out)
    want(logits["cold"] == logits["warm"], "the logits differ")


def interpreted(env):
    """Without a C compiler: the same file."""
    work = env.scratch("bake", "interpreted")
    texts = []
    for name, cc in {"with": None, "without": "/nonexistent"}.items():
        path = os.path.join(work, name + ".c")
        ingot(env, "compile", made(env), "--name", "m", "--context", "64", "--bake-prompt", prompt(env), "--weights", "text", "--quiet", "-o", path, cc=cc)
        texts.append(open(path, "rb").read())
    want(texts[0] == texts[1], "the states differ")


def refused(env):
    digits = os.path.join(ROOT, "models", "digits.onnx")
    want("is not a language model" in ingot(env, "compile", digits, "-d", "batch=1", "--bake-prompt", prompt(env), rc=3), "a network has no prompt")
    want("the prompt is empty" in ingot(env, "compile", made(env), "--bake-prompt", prompt(env, "\n\n"), rc=4), "an empty prompt")
    want("fill the context length" in ingot(env, "compile", made(env), "--context", "16", "--bake-prompt", prompt(env, "long " * 9), rc=4), "a long prompt")
    want("--weights=pointer" in ingot(env, "compile", made(env), "--context", "64", "--bake-prompt", prompt(env), "--weights", "pointer", "-o",
                                      os.path.join(env.scratch("bake", "refused"), "m.c"), rc=3), "weights that are an argument")
    want("leave out --bake-prompt" in ingot(env, "play", made(env), "-p", "x", "--bake-prompt", prompt(env), "--raw", rc=2), "no conversation")
    want("initial data" in ingot(env, "compile", made(env), "--context", "64", "--bake-prompt", prompt(env), "-o",
                                     os.path.join(env.scratch("bake", "refused"), "m.igb"), rc=3), "bytecode of it")


PROG = """prog
arena 64
buf x: in f32[2]
buf s: state f32[2] at 0 = {3, 0.5}
buf y: out f32[2]
for i in 0..2 {
  s[i] = s[i] + x[i]
}
for i in 0..2 {
  y[i] = s[i]
}
"""


def begins(env):
    """A program as text: initial contents of a state are read, run and printed."""
    path = os.path.join(env.scratch("bake", "begins"), "p.ing")
    with open(path, "w", encoding="utf-8") as f:
        f.write(PROG)
    got = run([env.need_ingot(), "run", path, "--input", "x=[1,2]", "--steps", "2"], 60)
    want(got.rc == 0 and b" 5 4.5" in got.out, explain(got) + got.out.decode() + got.text())
    want(b"state f32[2] at 0 = {3, 0.5}" in run([env.ingot, "opt", path, "--stop=none"], 60).out, "it is not printed")


def tests(env):
    return [Test(f"bake/{f.__name__}", lambda f=f: f(env), cost=cost) for f, cost in ((answers, 6), (window, 6), (library, 6), (interpreted, 3), (refused, 2), (begins, 1))]
