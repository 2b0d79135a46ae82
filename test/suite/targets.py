"""Whole networks for each target with vectors: C equals interp and vm to the bit, and ONNX Runtime within rounding."""
import os
import re
import sys

from lib import cpu, npy, target_table, tfile
from lib import onnxfile as onnx
from lib.core import ROOT, Fail, Test, explain, must, need, run, tail, want

NETS = ("mobile24", "mobile21", "dense32", "dense272", "grouped", "narrow", "dilated", "cut", "few", "holes", "widened", "pools", "extremes", "tied", "attention", "forest", "multiplied")
TARGETS = ("sse2", "avx2", "avx512")
HALVES = ("mobile21-float16", "attention-float16", "attention-bfloat16", "pools-bfloat16")
NEAR = {"float16": 1e-3, "bfloat16": 8e-3}  # rounding relative to the result; of 24 bits, F(4x4) loses about two
SLOW = {"dense272"}  # too slow on the interpreter
EMULATED = ("mobile24", "dilated", "few", "pools", "forest", "multiplied", "mobile21-float16")
SELFTEST = """#include "net.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  unsigned char *p = malloc(NET_SELFTEST_BYTES + 64);
  int status = net_selftest(p + (64 - (uintptr_t)p % 64));
  printf("self-test %d\\n", status);
  return status;
}
"""
ENDS = (6, 7, 10, 11, 19, 21, 28, 30, 75)  # channels


def prepare(env, net):
    """The model and the folder of its data."""
    env.need_ingot()
    folder = os.path.join(env.build, "targets")
    env.generated(folder, ["make/mktargets.py", "requirements.txt"], lambda: env.script("mktargets.py", folder))
    return os.path.join(folder, net + ".onnx"), os.path.join(folder, net)


def largest(data):
    with open(os.path.join(data, "largest")) as f:
        return float(f.read())


def check(env, net, target):
    cpu.need(target)
    model, data = prepare(env, net)
    near = largest(data) * NEAR.get(net.rpartition("-")[2], 2e-5)
    got = run([env.ingot, "verify", model, "--data", data, "--engine", "c", "--march", target, "--rtol", "0",
               "--atol", f"{near:g}"], 120)
    if got.rc:
        raise Fail(f"C against ONNX Runtime: {explain(got)}: {tail(got.out.decode() + got.text(), 4)}")
    results = {}
    for engine in ("c", "vm") if net in SLOW else ("c", "vm", "interp"):
        out = os.path.join(data, f"{target}-{engine}.npz")
        got = run([env.ingot, "run", model, "--data", data, "-o", out, "--engine", engine, "--march", target], 120)
        if got.rc:
            raise Fail(f"{engine}: {explain(got)}: {tail(got.text(), 4)}")
        with open(out, "rb") as f:
            results[engine] = f.read()
    for engine, bits in results.items():
        if bits != results["c"]:
            raise Fail(f"C and {engine} differ in their bits")


def emulated(env, net, target):
    """On another architecture: C in an emulator has the bits of the engine that computed its self-test."""
    compiler, emulator = (need(x) for x in cpu.OTHER[target])
    model, _ = prepare(env, net)
    folder = env.scratch("targets", f"{target}-{net}")
    must([env.ingot, "compile", model, "--march", target, "--selftest", "--quiet", "--name", "net", "-o", os.path.join(folder, "net.c")], f"compile {net}")
    with open(os.path.join(folder, "main.c"), "w") as f:
        f.write(SELFTEST)
    program = os.path.join(folder, "main")
    must([compiler, "-O1", *cpu.flags(target), "-static", "-o", program, os.path.join(folder, "main.c"), os.path.join(folder, "net.c")], compiler)
    must([emulator, program], f"{net} in {emulator}")


def precise(env, target):
    """--precise does not use Winograd F(4x4), whose error is larger than this."""
    cpu.need(target)
    model, data = prepare(env, "dense32")
    for args, fits in (([], False), (["--precise"], True)):
        got = run([env.need_ingot(), "verify", model, "--data", data, "--engine", "c", "--march", target, "--rtol", "0", "--atol",
                   f"{largest(data) * 7e-7:g}", *args], 120)
        if (got.rc == 0) != fits or got.rc not in (0, 1):
            raise Fail(f"{args}: {explain(got)}: {tail(got.out.decode() + got.text(), 4)}")


def weights(env):
    """16-bit weights take 16 bits each in the C, not 32."""
    size = {}
    for net in ("attention", "attention-float16"):
        model, data = prepare(env, net)
        out = os.path.join(data, "w.c")
        got = run([env.ingot, "compile", model, "--march", "avx2", "--quiet", "-o", out], 60)
        if got.rc:
            raise Fail(f"{net}: {explain(got)}: {tail(got.text(), 4)}")
        with open(out[:-1] + "h") as f:
            size[net] = int(re.search(r"_WEIGHT_BYTES (\d+)", f.read()).group(1))
    if size["attention-float16"] > 0.6 * size["attention"]:
        raise Fail(f"bytes of weights: {size}")


def families(env):
    """Each network uses its family, and --explain prints the family, the reason and the estimated time."""
    for net, words in (("dense32", "Winograd F(4x4) (Winograd's method: fewer multiplications for 3x3 convolutions of stride 1: 0."), ("dilated", "segments (most positions"), ("few", "dot rows of 8 lanes (dot products"),
                       ("mobile24", "vertical 5x1 of 8 lanes (vertical vectors"), ("attention", "tile 6x2 of 8 lanes (register tile of outer products: one operand is broadcast to all lanes: 6 rows share")):
        got = must([env.need_ingot(), "opt", prepare(env, net)[0], "--march", "avx2", "--explain"], f"{net} --explain")
        lines = [x for x in got.splitlines() if x.startswith("kernel '")]
        if not any(words in x for x in lines):
            raise Fail(f"{net}: no kernel is said to be `{words}`: {lines}")
        for line in lines:
            if not re.search(r", about [0-9]+\.[0-9]{3} us(, [0-9]+ multiply-adds)?(, [0-9]+ bytes)?$", line):
                raise Fail(f"{net}: no estimate in `{line}`")


def boxes(env):
    """NonMaxSuppression compares in vectors: scores with the threshold, boxes already selected with the current one."""
    g = onnx.Graph()
    ins = [g.input([1, 64, 4]), g.input([1, 1, 64]), g.ints(9), g.const([1], [0.5]), g.const([1], [0.1])]
    g.output(g.node("NonMaxSuppression", ins), None, onnx.INT64)
    path = os.path.join(env.scratch("targets"), "boxes.onnx")
    with open(path, "wb") as f:
        f.write(onnx.model(g))
    text = must([env.need_ingot(), "opt", path, "--march", "avx2", "--stop=loop_fuse"], "boxes")
    kernel = text[text.index('kernel "nonmaxsuppression'):].partition("\n}")[0]
    for words in (r"select\(not\(\w+\[.*:8\] <= splat\.8\(least\)\)", r"select\(and\(.*kept\[0, .*:8\] < splat\.8\(y1\)", r"select\(div\(common, kept\[4, .*:8\]"):
        want(re.search(words, kernel), f"no `{words}` in the kernel: {kernel}")
    g = onnx.Graph()
    ins = [g.input([1, "n", 4], name="b"), g.input([1, 1, "n"], name="s"), g.ints(9)]
    g.output(g.node("NonMaxSuppression", ins, ["y"]), None, onnx.INT64)
    with open(path, "wb") as f:
        f.write(onnx.model(g))
    for n, how, taken in ((3, "-inf", "[0, 0, 1] [0, 0, 0] [0, 0, 2]"), (0, "0", "")):
        boxes = [x for i in range(n) for x in (0, i * 10, 1, i * 10 + 1)]
        scores = [float("-inf"), 1.0, float("-inf")][:n]
        for name, shape, values in (("b", (1, n, 4), boxes), ("s", (1, 1, n), scores)):
            npy.save(os.path.join(env.scratch("targets"), f"{name}.npy"), npy.Array("f32", shape, [float(x) for x in values]))
        for march in ("scalar", "avx2"):
            out = os.path.join(env.scratch("targets"), "y.npz")
            at = [x for name in "bs" for x in ("-i", f"{name}=@{os.path.join(env.scratch('targets'), name)}.npy")]
            must([env.ingot, "run", path, "-d", f"n={n}", *at, "--march", march, "-o", out], f"{n} boxes")
            y = npy.load_npz(out)["y"]
            rows = [list(y.data[i:i + 3]) for i in range(0, len(y.data), 3)]
            want(" ".join(map(str, rows)) == taken and tuple(y.shape) == (n, 3), f"{n} boxes with {how}: {rows} {y.shape}")


def figures(env):
    """Every figure of vector units was measured for both kinds of x86 vectors, by an existing command, on a named machine."""
    with open(target_table.path()) as f:
        text = f.read()
    with open(os.path.join(os.path.dirname(target_table.path()), "compiler.def")) as f:
        text += f.read()
    with open(os.path.join(ROOT, "bench", "figures.py")) as f:
        script = f.read()
    machines = re.findall(r"^MACHINE\((\w+),", text, re.M)
    rows = re.findall(r'^COST\((\w+), "[^"]+", "([^"]*)"\)$', text, re.M)
    want(len(rows) == text.count("\nCOST("), "a row of COST cannot be read")
    tables, measured_on = target_table.costs(), ("sse2", "avx2", "avx512")
    for name, how in rows:
        want(re.fullmatch(r"bench/figures.py (\w+)", how) and f'"{how.split()[1]}": {how.split()[1]}' in script and f'"{name}"' in script,
             f"{name}: `{how}` does not measure it")
        for target, table in tables.items():
            _, seen = table[name] if target in measured_on or table[name] != tables["sse2"][name] else (0, "")
            found = [re.fullmatch(r"(\w+) (-?[0-9.]+)", x) for x in seen.split(", ")] if seen else []
            want(found or target not in measured_on, f"{name} was not measured for {target}")
            want(all(x and x.group(1) in machines for x in found), f"{name} for {target}: `{seen}` is not machines and values")
    for name, how in re.findall(r'^(?:FIGURE|LIMIT)\((\w+), [^"]*"[^"]+",\s*"([^"]*)"\)$', text, re.M):
        want(how, f"{name} has no command that measures it")
    got = must([sys.executable, os.path.join(ROOT, "bench", "figures.py"), "fma_wait", "--march", "sse2"], "bench/figures.py")
    want(re.search(r"\nsse2 +fma_wait +[0-9]+ ", got), f"bench/figures.py: {got}")


def lists(env):
    """Help, manual and docs/numerics.md list every target; --march multi selects those they list."""
    texts = {"--help": must([env.need_ingot(), "compile", "--help"], "help"), "build --help": must([env.ingot, "build", "--help"], "help")}
    for name, section in (("docs/ingot.1", r"march\\fR \\fICPU.*?\.TP"), ("docs/numerics.md", r"## FMA and targets.*?\n\n##")):
        with open(os.path.join(ROOT, name)) as f:
            texts[name] = re.search(section, f.read(), re.S)[0].replace("\\-", "-")
    for name, text in texts.items():
        missing = [t for t in cpu.TABLE if not re.search(rf"(?<![\w-]){re.escape(t)}(?![\w-])", text)]
        want(not missing, f"{name} does not name {missing}")
    multi = ",".join(target_table.multi())
    want(f"multi: {multi} selected" in " ".join(texts["--help"].split()), "--help: another list for multi")
    want(f"multi is {multi}:" in texts["docs/ingot.1"], "docs/ingot.1: another list for multi")
    got = must([env.ingot, "compile", os.path.join(ROOT, "models", "digits.onnx"), "-d", "batch=1", "--march", "multi", "--quiet", "--no-selftest"], "multi")
    for t in target_table.multi():
        want(f"/* ---- variant {t} ---- */" in got, f"multi has no variant {t}")


SMALL = """prog small
buf x: const f32[4] = {1e-30, -1e-30, 1e-20, 2.0}
buf z: const f32[4] = {1e-9, 1e-9, 1e-9, 3.0}
buf y: out f32[4]
kernel "k" {
  y[0:4] = x[0:4] * z[0:4]
}
"""


def subnormals(env, target):
    """Subnormals are as docs/numerics.md says: kept, or with column `flushes` zeros, which the self-test accepts."""
    compiler, emulator = (need(x) for x in cpu.OTHER[target])
    folder = env.scratch("targets", f"subnormals-{target}")
    with open(os.path.join(folder, "small.ing"), "w") as f:
        f.write(SMALL)
    must([env.need_ingot(), "compile", os.path.join(folder, "small.ing"), "--march", target, "--selftest", "--quiet", "--name", "net", "-o", os.path.join(folder, "net.c")], "compile")
    with open(os.path.join(folder, "main.c"), "w") as f:
        f.write(SELFTEST.replace("  return status;", "  float y[4];\n  net_run(p, y);\n  for (int i = 0; i < 4; i++) printf(\"%a \", y[i]);\n  return status;"))
    program = os.path.join(folder, "main")
    must([compiler, "-O1", *cpu.flags(target), "-static", "-o", program, os.path.join(folder, "main.c"), os.path.join(folder, "net.c")], compiler)
    small = [float.fromhex(x) for x in must([emulator, program], emulator).split()[2:]]
    zeros = bool(cpu.TABLE[target].get("flushes"))
    want([x == 0 for x in small] == [zeros, zeros, False, False] and small[3] == 6, f"{target}: {small}")


def turned(g, x, channels):
    """Channels last, as detectors and exporters of TensorFlow write them."""
    return g.node("Transpose", [g.node("Conv", [x, g.weight(channels, 16, 3, 3)], pads=[1] * 4)], perm=[0, 2, 3, 1])


def likely(g, x, channels):
    return g.node("Softmax", [turned(g, x, channels)], axis=-1)


def pixel(g, _, channels):
    """A 1 x 1 image: channels have the same order in blocks and row-major."""
    part = g.node("HardSwish", [g.node("GlobalAveragePool", [g.input([3, channels, 2, 2])])])
    both = g.node("Concat", [part, g.node("Relu", [part])], axis=1)
    return g.node("LeakyRelu", [g.node("Conv", [both, g.weight(2 * channels, 1, 3, 3)], group=2 * channels, pads=[1] * 4)])


def ends(env, target):
    """Channel blocks that fill no vector, read in another order: the last vector may span two blocks. Engine vm runs the program
    on any machine; where the CPU can run it, C has the same bits."""
    folder = env.scratch("targets", "ends-" + target)
    for build in (turned, likely, pixel):
        g = onnx.Graph()
        x = g.input([3, 16, 5, 3], name="x")
        for channels in ENDS:
            g.output(build(g, x, channels), None)
        model = os.path.join(folder, build.__name__ + ".onnx")
        with open(model, "wb") as f:
            f.write(onnx.model(g))
        must([env.need_ingot(), "verify", model, "--engine", "vm", "--march", target], f"{build.__name__} on vm")
        results = []
        for engine in ("vm", "c") if cpu.can_run(target) else ():
            out = os.path.join(folder, engine + ".npz")
            must([env.ingot, "run", model, "--seed", "1", "--quiet", "-o", out, "--engine", engine, "--march", target], f"{build.__name__} on {engine}")
            with open(out, "rb") as f:
                results.append(f.read())
        want(len(set(results)) < 2, f"{build.__name__}: C and vm differ in their bits")


# 1,007 columns: groups of panels that are filled together, panels that fill no group, lanes that fill no panel
PANELS = """graph (%a "a": f64[33,80], %b "b": f64[80,1007], %c "c": f32[33,80], %d "d": f32[80,1007]) {
  %y: f64[33,1007] = contract(%a, %b) {spec="mk,kn->mn"}
  %z: f32[33,1007] = contract(%c, %d) {spec="mk,kn->mn"}
  return %y "y", %z "z"
}
"""


def panels(env, target):
    """Operands packed at run time: all engines agree, and to the bit without fusion."""
    cpu.need(target)
    model = os.path.join(env.scratch("targets", f"panels-{target}"), "panels.ing")
    with open(model, "w") as f:
        f.write(PANELS)
    made = must([env.need_ingot(), "opt", model, "--march", target, "--stop=lower"], "opt")
    want(made.count("_panels: local") == 2, "the factors are not brought into panels")
    near = ["--rtol", "0", "--atol", "0" if target == "sse2" else "2e-5"]
    for engine in ("c", "vm", "interp"):
        must([env.ingot, "verify", model, "--engine", engine, "--march", target, *near], engine)


# Convolutions of int8: dimensions of the image, the kernel and the padding; strides. Images of width 1 and a window that reads
# only padding, which has no kernel of the family i16; kernels with enough products for it on target scalar.
I16 = {"row": ((8, 1), (4,), (3, 3), (1,)), "column": ((8, 6, 1), (3, 5), (1, 4, 1, 4), (1, 1)),
          "outside": ((8, 1), (4,), (8, 0), (3,)), "square": ((16, 9, 9), (3, 3), (1, 1, 1, 1), (1, 1))}
NO_VECTORS = ("scalar", "cortex-m", "cortex-m4")


def int16_rows(env, name, march):
    """Family i16: the program after the passes is valid and can be read back; C has the bytes of ref, with tcc too."""
    image, window, pads, strides = I16[name]
    folder = env.scratch("targets", f"i16-{name}-{march}")
    model, x, out, c = (os.path.join(folder, n) for n in ("net.onnx", "x.npy", "y.npz", "net.c"))
    g = onnx.Graph()
    w = (16, image[0], *window)
    values = [(i * 37 + i // 7) % 255 - 127 for i in range(npy.count(w))]
    one, zero = (g.const([], [0.02]), g.const([], [3], onnx.INT8))
    ins = [g.input([1, *image], onnx.INT8, "x"), one, zero, g.const(w, values, onnx.INT8), one, g.const([], [0], onnx.INT8), g.const([], [0.2]), zero]
    g.output(g.node("QLinearConv", ins, ["y"], kernel_shape=window, pads=pads, strides=strides), None, onnx.INT8)
    with open(model, "wb") as f:
        f.write(onnx.model(g))
    npy.save(x, npy.Array("i8", (1, *image), [(i * 59 + 11) % 256 - 128 for i in range(npy.count(image))]))
    text = must([env.need_ingot(), "opt", model, "--march", march, "--check", "--constants=all"], "opt --check")
    want("i16: local i16" in text or name == "outside" or march == "scalar" and name == "row", "the kernel is not of the family i16")
    tfile.reprint(env, text)
    results = []
    for engine in ("ref", "c"):
        must([env.ingot, "run", model, "--engine", engine, "-i", f"x=@{x}", "-o", out, *(["--march", march] if engine == "c" else [])], engine)
        results.append(npy.load_npz(out)["y"].data)
    want(results[0] == results[1], f"C has {results[1]}, ref {results[0]}")
    want(len(set(results[0])) > 2 or name == "outside", f"ref has {results[0]}")
    tcc = need("tcc")
    must([env.ingot, "compile", model, "--march", march, "--selftest", "--quiet", "--name", "net", "-o", c], "compile")
    with open(os.path.join(folder, "main.c"), "w") as f:
        f.write(SELFTEST)
    must([tcc, "-o", os.path.join(folder, "main"), os.path.join(folder, "main.c"), c], "tcc")
    must([os.path.join(folder, "main")], "self-test")


def tests(env):
    return [*(Test(f"targets/i16-{n}-{t}", lambda n=n, t=t: int16_rows(env, n, t), cost=1) for n in I16 for t in NO_VECTORS),
            *(Test(f"targets/panels-{t}", lambda t=t: panels(env, t), cost=2) for t in TARGETS), Test("targets/families", lambda: families(env), cost=5), Test("targets/boxes", lambda: boxes(env), cost=1), Test("targets/figures", lambda: figures(env), cost=3),
            *(Test(f"targets/ends-{t}", lambda t=t: ends(env, t), cost=6) for t in (*TARGETS, *cpu.OTHER)),
            *(Test(f"targets/{n}-{t}", lambda n=n, t=t: emulated(env, n, t), cost=8) for n in EMULATED for t in cpu.OTHER),
            *(Test(f"targets/subnormals-{t}", lambda t=t: subnormals(env, t), cost=1) for t in cpu.OTHER), Test("targets/lists", lambda: lists(env), cost=1),
            Test("targets/precise", lambda: precise(env, "avx2"), cost=5), Test("targets/weights", lambda: weights(env), cost=2)] + [
        Test(f"targets/{n}-{t}", lambda n=n, t=t: check(env, n, t), cost=10) for n in NETS + HALVES for t in TARGETS
            if n in HALVES or t != "sse2" or n in ("mobile21", "dilated", "widened", "cut", "few", "pools", "extremes", "tied", "attention", "forest", "multiplied")]
