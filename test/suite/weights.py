"""Weights of large models: compile time, where they are stored, and their size.

Bounds are generous: CPU time per megabyte, and memory as a multiple of the weights, beyond a tiny model.
The test writes models without packages (lib/onnxfile.py); their weights repeat the same numbers from different starts.
"""
import os
import threading
import re
import struct
import sys
import zipfile

from lib import onnxfile
from lib.core import ROOT, Fail, Test, explain, run, tail
from suite.promises import need

MEASURE = os.path.join(ROOT, "test", "lib", "measure.py")
LIMIT = 120
POOL = b"".join(struct.pack("<f", ((i * 7919) % 10007 - 5003) / 1e5) for i in range(10007))


def weight(g, *dims):
    """A constant of any size, created fast."""
    name, size = g.name(), 4
    for d in dims:
        size *= d
    start = g.count * 68 % len(POOL)
    data = (POOL[start:] + POOL[:start]) * (size // len(POOL) + 1)
    g.parts.append(onnxfile.chunk(5, b"".join(onnxfile.number(1, d) for d in dims) + onnxfile.number(2, onnxfile.FLOAT)
                                  + onnxfile.chunk(8, name) + onnxfile.chunk(9, data[:size])))
    return name


def write(env, name, g):
    """The file appears atomically: concurrent tests write the same ones."""
    path = os.path.join(env.scratch("weights"), name + ".onnx")
    with open(f"{path}.{threading.get_ident()}", "wb") as f:
        f.write(onnxfile.model(g))
    os.replace(f.name, path)
    return path


def dense(env, side, count):
    """A chain of `count` matrix products."""
    g = onnxfile.Graph()
    x = g.input([8, side])
    for _ in range(count):
        x = g.node("Relu", [g.node("MatMul", [x, weight(g, side, side)])])
    g.output(x, [8, side])
    return write(env, f"dense{side}x{count}", g)


def conv(g, x, w):
    return g.node("Relu", [g.node("Conv", [x, w], kernel_shape=[3, 3], pads=[1, 1, 1, 1])])


def measured(env, *args):
    got = run([sys.executable, "-I", "-S", MEASURE, env.ingot, "compile", *args], LIMIT)
    words = got.out.split()
    if len(words) != 3 or words[0] != b"0":
        raise Fail(f"compile {' '.join(args)}: {words}: {tail(got.text())}")
    return float(words[1]), int(words[2])


def cost(env, how, seconds, times):
    """CPU seconds per megabyte of weights, and memory in multiples of them; the minimum of a few runs."""
    env.need_ingot()
    tiny, model = dense(env, 16, 2), dense(env, 1024, 4)
    size = 4 * 4 << 20
    out = os.path.join(env.scratch("weights"), f"cost-{how}.c")
    for _ in range(4):
        t0, m0 = measured(env, tiny, "--march", "avx2", "--no-selftest", "--quiet", "-o", out)
        t, m = measured(env, model, "--march", "avx2", "--no-selftest", "--quiet", "--weights", how, "-o", out)
        if t - t0 <= seconds * size / 1e6 and m - m0 <= times * size:
            return
    raise Fail(f"{how}: {size / 1e6:.0f} MB of weights take {t - t0:.2f} s, expected at most {seconds * size / 1e6:.2f}, and "
               f"{(m - m0) / size:.1f} times their size in memory, expected at most {times}")


def compiled(env, model, *args, rc=0):
    got = run([env.need_ingot(), "compile", model, *args], LIMIT)
    if got.rc != rc:
        raise Fail(f"compile: {explain(got)}: {tail(got.text())}")
    return got


def beside(env):
    """Above 8 MB the weights are in a file next to the C, with a note; not below that size, on stdout, or if --weights says
    otherwise."""
    folder = env.scratch("weights", "beside")
    out, blob = os.path.join(folder, "net.c"), os.path.join(folder, "net.bin")
    large, small = dense(env, 1024, 3), dense(env, 1024, 1)
    for model, args, file in ((large, [], True), (large, ["--weights", "text"], False), (large, ["--weights", "inline"], False),
                              (small, [], False)):
        if os.path.exists(blob):
            os.remove(blob)
        got = compiled(env, model, "--march", "avx2", "--no-selftest", "-o", out, *args)
        if os.path.exists(blob) != file or ("net.bin" in got.text()) != file:
            raise Fail(f"{os.path.basename(model)} {args}: a file of weights: {os.path.exists(blob)}, said: {got.text()}")
        if file:
            with open(out[:-1] + "h") as f:
                if "net.bin" not in f.read():
                    raise Fail("the header does not name the file of weights")
            cc = run(["cc", "-std=c99", "-O0", "-mavx2", "-mfma", "-I", folder, "-c", out, "-o", out + ".o"], LIMIT)
            if cc.rc:
                raise Fail(f"cc: {tail(cc.text())}")
    got = compiled(env, large, "--march", "avx2", "--no-selftest")
    if b".incbin" in got.out or "-o FILE.c" not in got.err.decode():
        raise Fail(f"on stdout: {got.err.decode()}")


def begun(env):
    """Weights that a training step changes are initial state, in the same forms: a file or a string, not a number each."""
    folder = env.scratch("weights", "begun")
    out, blob = os.path.join(folder, "step.c"), os.path.join(folder, "step.bin")
    for model, size, most in ((dense(env, 1024, 3), 12 << 20, 1 << 20), (dense(env, 256, 2), 0, 4 * (512 << 10))):
        compiled(env, model, "--train", "loss=mse,optimizer=sgd", "--march", "scalar", "--no-selftest", "--quiet", "-o", out)
        found = os.path.getsize(blob) if os.path.exists(blob) else 0
        if (found > 0) != (size > 0) or found < size or os.path.getsize(out) > most:
            raise Fail(f"{os.path.basename(model)}: {found} bytes in a file, expected {size}; {os.path.getsize(out)} of C, expected at most {most}")
        cc = run(["cc", "-std=c99", "-O0", "-I", folder, "-c", out, "-o", out + ".o"], LIMIT)
        if cc.rc:
            raise Fail(f"cc: {tail(cc.text())}")
        if found:
            os.remove(blob)


def bytes_of(env, model, name):
    out = os.path.join(env.scratch("weights"), name + ".c")
    compiled(env, model, "--march", "avx2", "--weights", "file", "--no-selftest", "--quiet", "-o", out)
    with open(out[:-1] + "h") as f:
        return int(re.search(r"WEIGHT_BYTES (\d+)", f.read())[1])


def shared(env):
    """Convolutions that read the same weights at several sizes share their Winograd transform."""
    g = onnxfile.Graph()
    w = weight(g, 64, 64, 3, 3)
    for size in (48, 24, 12):
        g.output(conv(g, g.input([1, 64, size, size]), w), [1, 64, size, size])
    have, most = bytes_of(env, write(env, "shared", g), "shared"), 64 * 64 * 36 * 4
    if have > most + 4096:
        raise Fail(f"{have} bytes of weights, expected those of one transform, {most}")


def budget(env):
    """If transformed weights would be half the model's size and save little time, there are none."""
    env.need_ingot()
    for layers, want in ((1, True), (2, False)):
        g = onnxfile.Graph()
        x = g.input([1, 1024, 6, 6])
        for _ in range(layers):
            x = conv(g, x, weight(g, 1024, 1024, 3, 3))
        g.output(x, [1, 1024, 6, 6])
        got = run([env.ingot, "opt", write(env, "budget", g), "--march", "avx512", "--choices"], LIMIT)
        if got.rc or (b"winograd 6x6" in got.out) != want:
            raise Fail(f"{layers} layers: {explain(got)}: {tail(got.text())}")


def length(env, compiler):
    """A truncated or extended weights file is refused at compile time; so is a missing one, with the flags that help."""
    need(compiler)
    folder = env.scratch("weights", "length " + compiler)
    source, path = os.path.join(folder, "w.c"), os.path.join(folder, "w.bin")
    got = run([env.ingot, "compile", dense(env, 16, 2), "--weights", "file", "--name", "w", "-o", source, "--quiet"], LIMIT)
    if got.rc:
        raise Fail(f"compile: {explain(got)}: {tail(got.text())}")
    with open(path, "rb") as f:
        whole = f.read()
    for data, says in ((whole, None), (whole[:-1], "the weights file is"), (whole + b"\0", "the weights file is"), (whole[:24], "the weights file")):
        with open(path, "wb") as f:
            f.write(data)
        got = run([compiler, "-w", "-c", "-o", "w.o", "w.c"], LIMIT, cwd=folder, merge=True)
        if bool(got.rc) != bool(says) or (says and says not in got.out.decode()):
            raise Fail(f"{len(data)} of {len(whole)} bytes: {explain(got)}: {tail(got.out.decode())}")
    with open(path, "wb") as f:
        f.write(whole)
    away = env.scratch("weights", "away " + compiler)
    for flags, says in (([], "pass its folder with -I, or define W_WEIGHTS_FILE"), (["-I", folder], None), ([f'-DW_WEIGHTS_FILE="{path}"'], None)):
        got = run([compiler, "-w", *flags, "-c", "-o", "w.o", source], LIMIT, cwd=away, merge=True)
        if bool(got.rc) != bool(says) or (says and says not in got.out.decode()):
            raise Fail(f"from another folder, {flags}: {explain(got)}: {tail(got.out.decode())}")


def engine(env):
    """Engine c passes large weights to NAME_call after the inputs."""
    model, folder = dense(env, 1024, 3), env.scratch("weights", "engine")
    found = {}
    for name in ("interp", "c"):
        out = os.path.join(folder, name + ".npz")
        got = run([sys.executable, "-I", "-S", MEASURE, env.need_ingot(), "run", model, "--quiet", "--engine", name, "--output", out], LIMIT)
        words = got.out.split()
        if len(words) != 3 or words[0] != b"0":
            raise Fail(f"engine {name}: {words}: {tail(got.text())}")
        with open(out, "rb") as f:
            found[name] = f.read()
    if found["c"] != found["interp"]:
        raise Fail("c and interp differ")
    out = os.path.join(folder, "net.c")
    compiled(env, dense(env, 16, 2), "--caller", "--weights", "pointer", "--no-selftest", "--quiet", "-o", out)
    cc = run(["cc", "-std=c99", "-Werror", "-c", out, "-o", out + ".o"], LIMIT)
    if cc.rc:
        raise Fail(f"NAME_call of a file that is given its weights: {tail(cc.text())}")


def fetched(env):
    """A large product with several tiles prefetches weights, a small one does not; each line of the next panels is prefetched by
    one tile: lines per tile times tiles are the bytes of two panels."""
    for side, want in ((512, True), (64, False)):
        g = onnxfile.Graph()
        x = g.input([24, side])
        g.output(g.node("MatMul", [x, weight(g, side, side)]), [24, side])
        text = compiled(env, write(env, f"fetched{side}", g), "--march", "avx2", "--no-selftest").out.decode()
        at = re.findall(r"IG_PREFETCH_AT\(w, .*\(\w+ \* (\d+) \+", text)
        if bool(at) != want:
            raise Fail(f"{side}: {len(at)} statements fetch weights")
        if want and int(at[0]) * 4 * 64 != 2 * side * 8 * 4:
            raise Fail(f"a tile fetches {at[0]} lines")


def single_taps(g):
    """Windows that read only their center, for most of the image or for all of it."""
    for channels, side, apart in ((64, 28, 24), (128, 14, 14)):
        x = g.input([1, channels, side, side])
        y = g.node("Conv", [x, weight(g, channels, channels, 3, 3)], kernel_shape=[3, 3], dilations=[apart, apart], pads=[apart] * 4)
        g.output(y, [1, channels, side, side])


def shared_rows(g):
    """Rows that all matrices of a batch are multiplied with, larger than a cache."""
    g.output(g.node("MatMul", [g.input([1024, 256]), g.input([4, 256, 256])]), [4, 1024, 256])


def as_loops(env, name, put):
    """Vectors give the results of scalar loops, up to rounding."""
    g = onnxfile.Graph()
    put(g)
    model, found = write(env, name, g), []
    for march in ("scalar", "avx2", "avx512"):
        out = os.path.join(env.scratch("weights"), f"{name}-{march}.npz")
        got = run([env.need_ingot(), "run", model, "--quiet", "--engine", "vm", "--march", march, "--output", out], LIMIT)
        if got.rc:
            raise Fail(f"{march}: exit {got.rc}: {tail(got.text())}")
        with zipfile.ZipFile(out) as z:
            found.append(b"".join(z.read(n)[128:] for n in sorted(z.namelist())))
    want, *others = ([x for x, in struct.iter_unpack("<f", data)] for data in found)
    for march, have in zip(("avx2", "avx512"), others):
        far = max(abs(a - b) for a, b in zip(want, have))
        if len(want) != len(have) or not far <= 1e-4 * max(map(abs, want)):
            raise Fail(f"{march} differs by {far}")


def tests(env):
    return [Test("weights/file", lambda: cost(env, "file", 0.03, 3), cost=2),
            Test("weights/text", lambda: cost(env, "text", 0.1, 7), cost=3),
            Test("weights/beside", lambda: beside(env), cost=3), Test("weights/begun", lambda: begun(env), cost=2), Test("weights/shared", lambda: shared(env)),
            Test("weights/fetched", lambda: fetched(env)), Test("weights/single_taps", lambda: as_loops(env, "single_taps", single_taps), cost=2),
            Test("weights/shared_rows", lambda: as_loops(env, "shared_rows", shared_rows), cost=2),
            Test("weights/engine", lambda: engine(env), cost=3),
            Test("weights/budget", lambda: budget(env), cost=2),
            *[Test(f"weights/length-{c}", lambda c=c: length(env, c)) for c in ("gcc", "clang")]]
