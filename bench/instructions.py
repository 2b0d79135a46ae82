#!/usr/bin/env python3
"""Counts the instructions of one inference on simulated Cortex-M: the networks of MLPerf Tiny, next to TensorFlow Lite Micro with CMSIS-NN.

    bench/instructions.py [--write FILE] [--nets keywords_i8,..] [--cpus m4,..] [--march NAME] [--flags "-O2"] [--options ".."] [--functions]

The networks are those of test/tflite/nets.py (random weights). Every run must give the bytes of LiteRT (int8) or agree within 1e-4 (f32).
A plugin of QEMU (count.c) counts every executed instruction of NAME_run: exact, but neither cycles nor time. RAM is arena and stack that was
seen to be used, without inputs and outputs. --march: default those of BOARDS below. --functions lists counts by function.
TFLM: release build, kernels and CMSIS-NN at -O2, of Invoke() with the same files; RAM is its arena and stack.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

import boards
import doc

ROOT, INGOT = boards.ROOT, boards.INGOT
sys.path.insert(0, os.path.join(ROOT, "test"))
from lib import npy

# board of qemu-system-arm, flags, start of RAM, targets
BOARDS = {"m0plus": ("mps2-an385", "-mcpu=cortex-m0plus -mfloat-abi=soft", 0x20000000, ["cortex-m"]),
          "m3": ("mps2-an385", "-mcpu=cortex-m3 -mfloat-abi=soft", 0x20000000, ["cortex-m"]),
          "m4": ("mps2-an386", "-mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16", 0x20000000, ["cortex-m", "cortex-m4"]),
          "m7": ("mps2-an500", "-mcpu=cortex-m7 -mfloat-abi=hard -mfpu=fpv5-sp-d16", 0x20000000, ["cortex-m", "cortex-m4"]),
          "m55": ("mps3-an547", "-mcpu=cortex-m55 -mfloat-abi=hard", 0x21000000, ["cortex-m", "cortex-m4"])}
# Millions of instructions of TFLM 90b983c2b with CMSIS-NN 4ab83cc3, arm-none-eabi-gcc 12.2.1.
TFLM = {"images_i8": {"m3": 41.8, "m4": 29.9, "m7": 30.0, "m55": 4.91}, "keywords_i8": {"m3": 10.5, "m4": 7.70, "m7": 7.65, "m55": 1.82},
        "wakewords_i8": {"m3": 32.0, "m4": 24.1, "m7": 24.0, "m55": 6.56}, "anomalies_i8": {"m3": 0.955, "m4": 0.583, "m7": 0.583, "m55": 0.285},
        "images_f32": {"m4": 88.7}, "keywords_f32": {"m4": 36.2}, "wakewords_f32": {"m4": 80.6}, "anomalies_f32": {"m4": 1.36}}
NAMES = {"images": "ResNet-8", "keywords": "DS-CNN", "wakewords": "MobileNetV1-0.25", "anomalies": "autoencoder"}
MARKS = """
__attribute__((noinline)) void count_from(void) { __asm__ volatile(""); }
__attribute__((noinline)) void count_to(void) { __asm__ volatile(""); }
"""


def cases():
    """The folder of the networks with inputs and LiteRT's results."""
    folder = os.path.join(ROOT, "build", "tflitecases", "nets")
    if not os.path.exists(folder):
        folder = os.path.join(ROOT, "build", "boards", "nets")
    if not os.path.exists(folder):
        env = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "build", "tflite")}
        make = [os.path.join(ROOT, "build", "venv", "bin", "python"), os.path.join(ROOT, "test", "make", "mktflite.py"), os.path.dirname(folder), "nets/"]
        if subprocess.run(make, env=env).returncode:
            sys.exit("instructions: LiteRT is needed for the expected results: make setup")
    return folder


def plugin(folder):
    path = os.path.join(folder, "count.so")
    boards.must(*os.environ.get("CC", "cc").split(), "-O2", "-shared", "-fPIC", "-o", path, os.path.join(ROOT, "bench", "count.c"))
    return path


def text_of(array):
    kind = {"i8": "signed char", "f32": "float"}[array.kind]
    return kind, ",".join(f"{x!r}f" if array.kind == "f32" else str(x) for x in array.data)


def harness(folder, data):
    """Text that main() of the board includes: input, expected output, a run between two marks."""
    x, y = (next(iter(npy.load_npz(os.path.join(data, f"{k}_0.npz")).values())) for k in ("in", "out"))
    kind, numbers = text_of(x)
    result, expected = text_of(y)
    same = "result[i] == wanted[i]" if y.kind == "i8" else "(result[i] - wanted[i] < 1e-4f && wanted[i] - result[i] < 1e-4f)"
    return f"""#include "net.h"
#include <stdint.h>
static const {kind} given[] = {{{numbers}}};
static const {result} wanted[] = {{{expected}}};
static {result} result[{len(y.data)}];
static unsigned char expected[sizeof result];
__attribute__((aligned(64))) static unsigned char arena[NET_ARENA_BYTES];
static void say(const char *name, uint32_t x);{MARKS}
static int run(void) {{
  count_from();
  int bad = net_run(arena, given, result);
  count_to();
  for (int i = 0; i < {len(y.data)}; i++) {{
    if (!({same})) bad++;
    expected[i] = 0;
  }}
  for (unsigned i = 0; i < sizeof result; i++) expected[i] = ((unsigned char *)result)[i];
  say("wrong ", (uint32_t)bad);
  return 0;
}}
"""


def measure(folder, data, cpu, o, march):
    """Facts of one network on one board."""
    machine, flags, ram, _ = BOARDS[cpu]
    gcc = ["arm-none-eabi-gcc", "-std=c99", "-mthumb", *flags.split(), *o.flags.split(), "-ffp-contract=off", "-ffreestanding", "-ffunction-sections", "-fdata-sections"]
    boards.must(INGOT, "compile", os.path.join(data, "model.tflite"), "--quiet", "--name", "net", "--no-selftest", "--weights", "text", "--march", march,
                *o.options.split(), "-o", os.path.join(folder, "net.c"))
    with open(os.path.join(folder, "main.c"), "w") as f:
        f.write(harness(folder, data) + boards.BOARD)
    with open(os.path.join(folder, "board.ld"), "w") as f:
        f.write(boards.SCRIPT.replace("0x20000000", hex(ram)).replace("4M  ram", "512K  ram" if cpu == "m55" else "4M  ram")
                .replace("LENGTH = 4M }", "LENGTH = 2M }").replace("+ 4M;", "+ 2M;"))
    boards.must(*gcc, "-c", "-o", "net.o", "net.c", cwd=folder)
    boards.must(*gcc, "-c", "-o", "main.o", "main.c", cwd=folder)
    boards.must(*gcc, "-nostdlib", "-Wl,--gc-sections", "-T", "board.ld", "-o", "board.elf", "main.o", "net.o", "-lgcc", cwd=folder)
    elf = os.path.join(folder, "board.elf")
    symbols = sorted((int(a, 16) & ~1, name) for a, kind, name in re.findall(r"^(\w+) ([tTwW]) (\S+)$", boards.must("arm-none-eabi-nm", elf), re.M))
    at = {name: a for a, name in symbols}
    out = os.path.join(folder, "counts")
    said = boards.must("qemu-system-arm", "-M", machine, "-nographic", "-semihosting", "-kernel", elf, "-plugin",
                       f"{o.plugin},from={at['count_from']},to={at['count_to']},out={out}")
    said = {k: int(v) for k, v in re.findall(r"(\w+) (\d+)", said)}
    if said.get("wrong", 1):
        sys.exit(f"instructions: {data} on {cpu}, --march {march}: {said.get('wrong', 'no')} results differ from LiteRT's")
    with open(out) as f:
        counts = [(int(a, 16), int(n)) for a, n in (line.split() for line in f)]
    header = open(os.path.join(folder, "net.h")).read()
    by = {}
    for a, n in counts:
        name = max((s for s in symbols if s[0] <= a), default=(0, "?"))[1]
        by[name] = by.get(name, 0) + n
    fact = lambda name: int(re.search(rf"NET_{name} (\d+)", header)[1])
    if o.keep:
        boards.must("cp", elf, out, os.path.join(folder, "net.c"), o.keep)
    return {"count": sum(n for _, n in counts), "ram": fact("ARENA_BYTES") + said["stack"], "stack": said["stack"], "bound": fact("STACK_BYTES"),
            "arena": fact("ARENA_BYTES"), "weights": fact("WEIGHT_BYTES"), "code": boards.flash(os.path.join(folder, "net.o")) - fact("WEIGHT_BYTES"), "by": by}


def row(name, cpu, march, got):
    """A line of the table."""
    short, kind = name.rsplit("_", 1)
    peer = TFLM.get(name, {}).get(cpu)
    ratio = f"{peer:.3g} | {got['count'] / 1e6 / peer:.2f}" if peer else " | "
    return f"| {NAMES[short]}, {kind.replace('i8', 'int8')} | {cpu.upper().replace('PLUS', '+')} | {march} | {got['count'] / 1e6:.3g} | {ratio} | {got['ram']:,} | {got['code']:,} | {got['weights']:,} |"


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--write", help="a document with the marks <!-- instructions --> and <!-- end -->")
    p.add_argument("--nets", default=",".join(f"{n}_{k}" for k in ("i8", "f32") for n in NAMES))
    p.add_argument("--cpus", default=",".join(BOARDS))
    p.add_argument("--march", help="one target instead of those of the board")
    p.add_argument("--flags", default="-O2")
    p.add_argument("--options", default="", help="more options of ingot compile")
    p.add_argument("--functions", action="store_true")
    p.add_argument("--keep", help="folder for the program, its C and its counts")
    o = p.parse_args()
    lines = ["| network | Cortex | target | millions of instructions | TFLM | ratio | RAM | code | weights |", "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    with tempfile.TemporaryDirectory() as folder:
        o.plugin = plugin(folder)
        for name in o.nets.split(","):
            for cpu in o.cpus.split(","):
                if name.endswith("f32") and cpu not in ("m4", "m7"):
                    continue  # without an FPU, or with 512 KB for weights
                for march in [o.march] if o.march else BOARDS[cpu][3][:1 if name.endswith("f32") else None]:
                    got = measure(folder, os.path.join(cases(), name), cpu, o, march)
                    lines.append(row(name, cpu, march, got))
                    if not o.write:
                        print(lines[-1], flush=True)
                    if o.functions:
                        for f, n in sorted(got["by"].items(), key=lambda x: -x[1])[:40]:
                            print(f"    {n:>12,} {f}")
                        print("    arena {arena:,} stack {stack} bound {bound}".format(**got))
    if o.write:
        doc.write_between(o.write, "instructions", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
