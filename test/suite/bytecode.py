"""Models as files of bytecode: `ingot compile MODEL -o FILE.igb` and what takes such a file. Outputs have the bits of the interpreter;
what a file is not is said with the byte at which that shows. test/unit/bytecode.c changes every byte of a small one.
"""
import os
from lib import npy, tfile
from lib.core import ROOT, Fail, Test, explain, run, tail

DIGITS = os.path.join(ROOT, "models", "digits.onnx")
LIMIT = 60
COUNTER = """graph counter (%1 "x": f32[2], %2 "s": f32[2]) {
  %3 "t": f32[2] = add(%1, %2)
  %4 "y": f32[2] = mul(%3, %3)
  return %4 "y", %3 "t"
}
"""


def must(cmd, what, rc=0):
    got = run(cmd, LIMIT)
    if got.rc != rc or got.timed_out:
        raise Fail(f"{what}: {explain(got)}, expected exit status {rc}: {tail(got.text(), 4)}")
    return got


def both(env, name, model, more, given):
    """The same bits from the file as from the interpreter."""
    folder = env.scratch("bytecode", name)
    path, outs = os.path.join(folder, name + ".igb"), [os.path.join(folder, x + ".npz") for x in ("interp", "file")]
    must([env.need_ingot(), "compile", *model, "--quiet", "-o", path], "compile")
    must([env.ingot, "run", *model, *more, *given, "--quiet", "--engine", "interp", "--output", outs[0]], "interp")
    must([env.ingot, "run", path, *more, *given, "--quiet", "--output", outs[1]], "the file")
    a, b = (npy.load_npz(x) for x in outs)
    if {k: npy.encode(v) for k, v in a.items()} != {k: npy.encode(v) for k, v in b.items()}:
        raise Fail(f"{name}: outputs differ")
    return path


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w") as f:
        f.write(text)
    return path


def same(env):
    folder = env.scratch("bytecode", "same")
    image = os.path.join(folder, "image.npy")
    with open(image, "wb") as f:
        f.write(npy.encode(npy.Array("f32", (5, 1, 8, 8), [i % 17 / 16 for i in range(320)])))
    both(env, "fixed", [DIGITS, "-d", "batch=1"], ["--seed", "3"], [])
    both(env, "vectors", [DIGITS, "-d", "batch=1", "--march", "avx2"], ["--seed", "3"], [])
    both(env, "open", [DIGITS, "--max-shapes", "image:32x1x8x8"], [], ["--input", f"image=@{image}"])
    counter = write(folder, "counter.ing", COUNTER)
    path = os.path.join(folder, "counter.igb")
    must([env.ingot, "compile", counter, "--state", "s=t", "-o", path], "state")
    got = must([env.ingot, "run", path, "--input", "x=[1,2]", "--steps", "3"], "steps").out.decode()
    if " 9 36" not in got:
        raise Fail(f"three steps of a counter: {got}")
    texts = [t for t in tfile.files("exec") if t.body.startswith("graph") and "2000000000" not in t.body and "sym " not in t.body]
    for i, t in enumerate(texts[::max(1, len(texts) // 12)]):
        model = t.write(env)
        if run([env.ingot, "compile", model, "--quiet", "-o", os.path.join(folder, "probe.igb")], LIMIT).rc == 0:
            both(env, f"text{i}", [model], ["--seed", "5"], [])


def refused(env):
    folder = env.scratch("bytecode", "refused")
    path = os.path.join(folder, "d.igb")
    must([env.need_ingot(), "compile", DIGITS, "-d", "batch=1", "-o", path], "compile")
    for args in (["run", path, "--engine", "interp"], ["compile", path, "-o", os.path.join(folder, "d.c")], ["opt", path], ["verify", path]):
        got = must([env.ingot, *args], " ".join(args), 3)
        if "the file is bytecode" not in got.text():
            raise Fail(f"{args}: {got.text()}")
    must([env.ingot, "compile", DIGITS, "-d", "batch=1", "--weights", "text", "-o", path], "an option of C", 2)
    for args in (["inspect"], ["inspect", "--json"], ["bench", "--seconds", "0.05"]):
        must([env.ingot, args[0], path, *args[1:]], args[0])
    with open(path, "rb") as f:
        data = bytearray(f.read())
    for what, changed, place in (("cut off", data[:-64], "byte 16: is truncated"), ("changed", data[:-100] + bytes([data[-100] ^ 1]) + data[-99:], "byte 24: is damaged"),
                                 ("newer", data[:8] + b"\7" + data[9:], "byte 8: is bytecode of another version"), ("short", data[:40], "byte 0: is no bytecode")):
        bad = os.path.join(folder, "bad.igb")
        with open(bad, "wb") as f:
            f.write(changed)
        for verb in ("run", "inspect"):
            got = must([env.ingot, verb, bad], what, 4)
            if place not in got.text():
                raise Fail(f"{what}: {got.text()}")


def tests(env):
    return [Test("bytecode/same", lambda: same(env), cost=4), Test("bytecode/refused", lambda: refused(env), cost=2)]
