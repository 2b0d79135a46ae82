"""docs/results/boards.md: bytecode and C on a simulated Cortex-M4 give the same bits, and take about the bytes in the table.

Training on the board: the loss falls, within the reported RAM.
"""
import os
import random
import re
import sys

from lib import onnxfile
from lib.core import ROOT, Fail, Skip, Test, explain, must, need, run, tail, want

sys.path.append(os.path.join(ROOT, "bench"))
import boards  # noqa: E402

NEAR = 0.05  # compiler versions differ


def rows(text):
    """Returns the figures of each network."""
    found = re.findall(r"^\| ([^|]+) \|((?: [\d,]+ \|)+)$", text, re.M)
    return {name: [int(x.replace(",", "")) for x in re.findall(r"[\d,]+", numbers)] for name, numbers in found}


def table(env):
    need("arm-none-eabi-gcc")
    need("qemu-system-arm")
    got = run([sys.executable, os.path.join(ROOT, "bench", "boards.py")], 300, env={"INGOT": env.need_ingot()})
    if got.rc:
        raise Fail(f"boards: {explain(got)}: {tail(got.text(), 6)}")
    with open(os.path.join(ROOT, "docs", "results", "boards.md")) as f:
        said, found = rows(f.read()), rows(got.out.decode())
    if not found or said.keys() != found.keys():
        raise Fail(f"the table has {sorted(said)}, expected {sorted(found)}: make boards")
    for name, numbers in found.items():
        for have, want in zip(numbers, said[name]):
            if abs(have - want) > NEAR * want:
                raise Fail(f"{name}: {have} bytes, docs/results/boards.md says {want}: make boards")


# Millions of instructions on a Cortex-M4, and bytes of RAM.
MOST = {("ResNet-8", "cortex-m"): (31, 40_000), ("DS-CNN", "cortex-m"): (8.5, 20_000), ("MobileNetV1-0.25", "cortex-m"): (25, 60_000),
        ("autoencoder", "cortex-m"): (0.65, 2_000), ("ResNet-8", "cortex-m4"): (21, 40_000), ("DS-CNN", "cortex-m4"): (5.4, 20_000),
        ("MobileNetV1-0.25", "cortex-m4"): (16, 60_000), ("autoencoder", "cortex-m4"): (0.45, 2_000)}


def instructions(env):
    """The int8 networks of MLPerf Tiny give the bytes of LiteRT on a Cortex-M4, in few instructions and little RAM."""
    for tool in ("arm-none-eabi-gcc", "qemu-system-arm"):
        need(tool)
    if not os.path.isdir(os.path.join(env.build, "tflitecases", "nets")):
        raise Skip("the networks are made by test/run tflite/nets")
    names = ",".join(f"{x}_i8" for x in ("images", "keywords", "wakewords", "anomalies"))
    got = must([sys.executable, os.path.join(ROOT, "bench", "instructions.py"), "--nets", names, "--cpus", "m4"], "bench/instructions.py",
               env={"INGOT": env.need_ingot()})
    rows = re.findall(r"^\| ([\w.-]+), int8 \| M4 \| (\S+) \| ([\d.]+) \|.*?\|.*?\| ([\d,]+) \|", got, re.M)
    want(len(rows) == len(MOST), f"rows of {got}")
    for name, target, count, ram in rows:
        most, most_ram = MOST[name, target]
        want(float(count) <= most and int(ram.replace(",", "")) <= most_ram, f"{name}, {target}: {count} million instructions, {ram} bytes of RAM")


def keywords(path):
    """DS-CNN of MLPerf Tiny: 49 x 10 features, 12 words, random weights."""
    r, g = random.Random(11), onnxfile.Graph()

    def weight(*dims):
        count, fan = 1, 1
        for d in dims:
            count *= d
        for d in dims[1:]:
            fan *= d
        return g.const(dims, [r.gauss(0, (2 / fan) ** 0.5) for _ in range(count)])

    def conv(x, out, each, kernel, stride, pads, group=1):
        y = g.node("Conv", [x, weight(out, each, *kernel), g.const([out], [0.0] * out)], kernel_shape=kernel, strides=stride, pads=pads, group=group)
        return g.node("Relu", [y])

    x = conv(g.input([1, 1, 49, 10], name="x"), 64, 1, [10, 4], [2, 2], [4, 1, 5, 1])
    for _ in range(4):
        x = conv(x, 64, 1, [3, 3], [1, 1], [1, 1, 1, 1], group=64)
        x = conv(x, 64, 64, [1, 1], [1, 1], [0, 0, 0, 0])
    x = g.node("Flatten", [g.node("GlobalAveragePool", [x])])
    g.output(g.node("Gemm", [x, weight(12, 64), g.const([12], [0.0] * 12)], ["y"], transB=1), [1, 12])
    with open(path, "wb") as f:
        f.write(onnxfile.model(g))


TRAINING = r"""#include "step.h"
#include <stddef.h>
enum { EXAMPLES = 2, STEPS = 50 };
__attribute__((aligned(64))) static unsigned char arena[STEP_ARENA_BYTES];
static unsigned char result[1];
static const unsigned char expected[1];
static float x[490];
void *memmove(void *to, const void *from, size_t n) {
  volatile char *t = to;
  const char *f = from;
  for (size_t i = 0; i < n; i++) {
    size_t k = (uintptr_t)to > (uintptr_t)from ? n - 1 - i : i;
    t[k] = f[k];
  }
  return to;
}
static void say(const char *name, uint32_t x);
static int run(void) {
  float loss, first = 0, last = 0;
  step_reset(arena);
  for (int k = 0; k < STEPS; k++) {
    const int64_t label[1] = {3 + 4 * (k % EXAMPLES)};
    for (int i = 0; i < 490; i++) x[i] = (float)(i * (37 + 12 * (k % EXAMPLES)) % 101) / 101;
    if (step_train(arena, x, label, &loss)) return 2;
    if (k < EXAMPLES) first += loss;
    if (k >= STEPS - EXAMPLES) last += loss;
  }
  say("first ", (uint32_t)(first * 1e6f));
  say("last ", (uint32_t)(last * 1e6f));
  return 0;
}
"""


def training(env):
    """50 training steps of the keyword spotter: the loss falls, and arena, arrays and measured stack are within the RAM that the
    command reports."""
    for tool in ("arm-none-eabi-gcc", "qemu-system-arm"):
        need(tool)
    folder = env.scratch("boards", "training")
    keywords(os.path.join(folder, "kws.onnx"))
    told = must([env.need_ingot(), "train", os.path.join(folder, "kws.onnx"), "--emit", os.path.join(folder, "step.c"), "--batch", "1", "--optimizer", "sgd", "--lr", "0.02"], "emit")
    ram = int(re.fullmatch(r"RAM (\d+) bytes\n", told)[1])
    with open(os.path.join(folder, "string.h"), "w", encoding="utf-8") as f:  # the compiler may lack its library
        f.write("#include <stddef.h>\nvoid *memcpy(void *, const void *, size_t);\nvoid *memset(void *, int, size_t);\nvoid *memmove(void *, const void *, size_t);\n")
    must([*boards.GCC, "-I", folder, "-O2", "-c", "-o", os.path.join(folder, "step.o"), os.path.join(folder, "step.c")], "arm-none-eabi-gcc")
    try:
        _, said = boards.on_board(folder, TRAINING, ["step.o"], [])
    except SystemExit as e:
        raise Fail(str(e)) from None
    with open(os.path.join(folder, "step.h"), encoding="utf-8") as f:
        arena = int(re.search(r"STEP_ARENA_BYTES (\d+)", f.read())[1])
    want(said["last"] < 0.5 * said["first"], f"the loss does not fall: {said}")
    used = arena + said["stack"] + 490 * 4 + 8 + 4
    want(used <= ram and ram < 1.1 * used, f"{ram} bytes of RAM were told, {used} are used: {said}")


def tests(env):
    return [Test("boards/instructions", lambda: instructions(env), cost=20), Test("boards/table", lambda: table(env), cost=10), Test("boards/training", lambda: training(env), cost=12)]
