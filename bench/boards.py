#!/usr/bin/env python3
"""Compares bytecode with C on a simulated Cortex-M4 (qemu-system-arm, mps2-an386): flash, RAM and equal bits.

    bench/boards.py [--write FILE] [--only NAME]

Three networks: the digits of models/, the keyword spotter and the anomaly detector of MLPerf Tiny (DS-CNN; an autoencoder 640-128-8-128-640) with
random weights. Each becomes a file of bytecode (`ingot compile -o NAME.igb`) for the machine that `ingot vm --emit` writes, and C (`ingot compile
-o NAME.c`); both are compiled by arm-none-eabi-gcc -Os, run on the board, and must give the bits of `ingot run` on this machine. Flash is what the linker
places there, with the functions of libgcc, without the test program. RAM is the memory from the caller, the arrays, and the measured stack. Prints a table, or writes it between the marks of FILE.
"""
import argparse
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

import doc

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INGOT = os.environ.get("INGOT", os.path.join(ROOT, "build", "ingot"))
GCC = ["arm-none-eabi-gcc", "-std=c99", "-Os", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", "-ffp-contract=off",
       "-ffreestanding", "-ffunction-sections", "-fdata-sections"]
SCRIPT = """MEMORY { flash (rx) : ORIGIN = 0, LENGTH = 4M  ram (rwx) : ORIGIN = 0x20000000, LENGTH = 4M }
SECTIONS {
  .text : { KEEP(*(.vectors)) *(.text*) *(.rodata*) } > flash
  .bss (NOLOAD) : { *(.bss*) *(COMMON) } > ram
  stack_top = 0x20000000 + 4M;
}
"""
# Paints the stack before a run and inspects it afterwards. Returns 0 if the results are as expected.
BOARD = r"""
extern uint32_t stack_top[];
void reset(void);
__attribute__((section(".vectors"), used)) static const void *const vectors[2] = {stack_top, (const void *)reset};
void *memcpy(void *to, const void *from, size_t n) {
  for (size_t i = 0; i < n; i++) ((volatile char *)to)[i] = ((const char *)from)[i];
  return to;
}
void *memset(void *to, int x, size_t n) {
  for (size_t i = 0; i < n; i++) ((volatile char *)to)[i] = (char)x;
  return to;
}
static void ask(uint32_t what, const void *of) {
  __asm__ volatile("mov r0, %0\n mov r1, %1\n bkpt #0xab" : : "r"(what), "r"(of) : "r0", "r1", "memory");
}
static void say(const char *name, uint32_t x) {
  char text[12];
  int at = 11;
  for (text[at] = 0, text[--at] = '\n'; at == 10 || x; x /= 10) text[--at] = (char)('0' + x % 10);
  ask(4, name);
  ask(4, text + at);
}
enum { PAINT = 0x5a5a5a5a, PAINTED = 1 << 16 };
static __attribute__((noinline)) int painted_run(void) {
  volatile uint32_t *low = stack_top - PAINTED, *here = (volatile uint32_t *)__builtin_frame_address(0) - 16;
  for (volatile uint32_t *p = low; p < here; p++) *p = PAINT;
  int bad = run();
  while (*low == PAINT) low++;
  say("stack ", (uint32_t)((uintptr_t)stack_top - (uintptr_t)low));
  for (size_t i = 0; !bad && i < sizeof result; i++) bad = ((const unsigned char *)result)[i] != expected[i];
  return bad;
}
void reset(void) {
  *(volatile uint32_t *)0xe000ed88 |= 0xf << 20;
  __asm__ volatile("dsb\n isb");
  uint32_t block[2] = {0x20026, (uint32_t)painted_run()};
  ask(0x20, block);
  for (;;) continue;
}
"""
VM = r"""#include "ingot_vm.h"
#include "data.h"
extern const unsigned char model[];
static uint64_t memory[1 << 17];
static void say(const char *name, uint32_t x);
static int run(void) {
  IngotVm vm;
  const IngotVmArray in[] = {{(void *)given, sizeof given}}, out[] = {{result, sizeof result}};
  if (ingot_vm_open(model, MODEL_BYTES, &vm)) return 2;
  say("memory ", (uint32_t)vm.memory_bytes);
  if (ingot_vm_reset(&vm, memory, sizeof memory)) return 3;
  return ingot_vm_run(&vm, memory, sizeof memory, NULL, 0, 0, in, out);
}
"""
MODEL = '__asm__(".section .rodata.model,\\"a\\"\\n.balign 64\\n.global model\\nmodel: .incbin \\"%s\\"\\n");\n'
C = r"""#include "net.h"
#include <stdint.h>
#include "data.h"
__attribute__((aligned(64))) static unsigned char arena[NET_ARENA_BYTES];
static void say(const char *name, uint32_t x);
static int run(void) {
  say("memory ", NET_ARENA_BYTES);
  return net_run(arena, given, result);
}
"""


class Net:
    """A graph in text, layer by layer."""

    def __init__(self, shape):
        self.rng, self.lines, self.shape, self.at, self.n = random.Random(7), [], shape, "%x", 0
        self.given = shape

    def put(self, shape, what):
        self.n += 1
        name, dims = f"%{self.n}", ",".join(map(str, shape))
        self.lines.append(f"  {name}: f32[{dims}] = {what}")
        return name

    def weights(self, shape, scale):
        count = 1
        for d in shape:
            count *= d
        return self.put(shape, "const {" + ", ".join(f"{self.rng.uniform(-scale, scale):.7g}" for _ in range(count)) + "}")

    def step(self, shape, what):
        self.at, self.shape = self.put(shape, what), shape

    def relu(self):
        self.step(self.shape, f"max({self.at}, {self.put([], 'const {0}')})")

    def conv(self, out, kernel, stride, lo, hi, group=1):
        n, c, h, w = self.shape
        weight, bias = self.weights([out, c // group, *kernel], (3 / (c // group * kernel[0] * kernel[1])) ** 0.5), self.weights([out, 1, 1], 0.1)
        size = [(d + a + b - k) // s + 1 for d, k, s, a, b in zip((h, w), kernel, stride, lo, hi)]
        self.step([n, out, *size], f"conv({self.at}, {weight}) {{group={group}, stride={list(stride)}, dilation=[1,1], pad_lo={list(lo)}, pad_hi={list(hi)}}}")
        self.step(self.shape, f"add({self.at}, {bias})")
        self.relu()

    def dense(self, out, relu=True):
        weight, bias = self.weights([self.shape[1], out], (3 / self.shape[1]) ** 0.5), self.weights([out], 0.1)
        self.step([1, out], f'contract({self.at}, {weight}) {{spec="mk,kn->mn"}}')
        self.step([1, out], f"add({self.at}, {bias})")
        if relu:
            self.relu()

    def text(self):
        return f'graph (%x "x": f32[{",".join(map(str, self.given))}]) {{\n' + "\n".join(self.lines) + f'\n  return {self.at} "y"\n}}\n'


def keywords():
    """DS-CNN: 49 x 10 features, 12 words."""
    net = Net([1, 1, 49, 10])
    net.conv(64, (10, 4), (2, 2), (4, 1), (5, 1))
    for _ in range(4):
        net.conv(64, (3, 3), (1, 1), (1, 1), (1, 1), group=64)
        net.conv(64, (1, 1), (1, 1), (0, 0), (0, 0))
    area = net.shape[2] * net.shape[3]
    net.step([1, 64], f"reduce_sum({net.at}) {{axes=[2,3], keep=0}}")
    net.step([1, 64], f"mul({net.at}, {net.put([], 'const {%.9g}' % (1 / area))})")
    net.dense(12, relu=False)
    net.step([1, 12], f"sub({net.at}, {net.put([1, 1], f'reduce_max({net.at}) {{axes=[1], keep=1}}')})")
    net.step([1, 12], f"exp({net.at})")
    net.step([1, 12], f"div({net.at}, {net.put([1, 1], f'reduce_sum({net.at}) {{axes=[1], keep=1}}')})")
    return net


def anomaly():
    """The autoencoder: 640 features, and as many back."""
    net = Net([1, 640])
    for out in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        net.dense(out)
    net.dense(640, relu=False)
    return net


NETS = {"digits": ("digits, 8x8", None, [1, 1, 8, 8]), "keywords": ("keyword spotting, DS-CNN", keywords, None), "anomaly": ("anomaly detection, autoencoder", anomaly, None)}


def must(*words, cwd=None):
    got = subprocess.run(words, cwd=cwd, capture_output=True)
    if got.returncode:
        sys.exit(f"boards: {' '.join(words)}\n{got.stdout.decode()}{got.stderr.decode()}")
    return got.stdout.decode() + got.stderr.decode()


def flash(path):
    """Bytes of all sections of an object or program that lie in flash."""
    sizes = re.findall(r"^(\.\S+)\s+(\d+)\s", must("arm-none-eabi-size", "-A", path), re.M)
    return sum(int(n) for s, n in sizes if s.startswith((".text", ".rodata", ".data", ".vectors")))


def literal(kind, name, data):
    return f"static const {kind} {name}[] = {{{','.join(map(str, data))}}};\n"


def prepare(folder, name):
    """Returns the model in all its forms, its input, and the results of ingot on this machine."""
    title, make, shape = NETS[name]
    model, more = os.path.join(ROOT, "models", "digits.onnx"), ["-d", "batch=1"]
    if make:
        net = make()
        model, more, shape = os.path.join(folder, "net.ing"), [], net.given
        with open(model, "w") as f:
            f.write(net.text())
    count = 1
    for d in shape:
        count *= d
    given = [round(random.Random(3).uniform(0, 1) * i % 1, 6) for i in range(count)]
    raw = struct.pack(f"<{count}f", *given)
    with open(os.path.join(folder, "x.npy"), "wb") as f:
        head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({','.join(map(str, shape))},), }}"
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + head.ljust(117).encode() + b"\n" + raw)
    given_as = ("image" if not make else "x") + "=@" + os.path.join(folder, "x.npy")
    must(INGOT, "run", model, *more, "--input", given_as, "--output", folder, "--quiet")
    with open(os.path.join(folder, "output_0.pb"), "rb") as f:
        proto = f.read()
    must(INGOT, "compile", model, *more, "--quiet", "-o", os.path.join(folder, "net.igb"))
    must(INGOT, "compile", model, *more, "--quiet", "--name", "net", "--no-selftest", "--weights", "literal", "-o", os.path.join(folder, "net.c"))
    with open(os.path.join(folder, "net.h")) as f:
        out = int(re.search(r"NET_OUTPUT0_ELEMENTS (\d+)", f.read())[1])
    expected = tensor_bytes(proto, 4 * out)
    with open(os.path.join(folder, "data.h"), "w") as f:
        f.write(literal("float", "given", [f"{x!r}f" for x in struct.unpack(f"<{count}f", raw)]) + literal("unsigned char", "expected", expected) +
                f"static float result[{out}];\nenum {{ MODEL_BYTES = {os.path.getsize(os.path.join(folder, 'net.igb'))} }};\n")
    return title, 4 * (count + out)


def tensor_bytes(proto, n):
    """raw_data, the last field, with n bytes."""
    if len(proto) < n:
        sys.exit("boards: the result is too short")
    return proto[-n:]


def on_board(folder, main, objects, more):
    """Links and runs a program; returns its bytes of flash and its output."""
    with open(os.path.join(folder, "main.c"), "w") as f:
        f.write(main + BOARD)
    with open(os.path.join(folder, "board.ld"), "w") as f:
        f.write(SCRIPT)
    must(*GCC, *more, "-c", "-o", "main.o", "main.c", cwd=folder)
    must(*GCC, "-nostdlib", "-Wl,--gc-sections", "-T", "board.ld", "-o", "board.elf", "main.o", *objects, "-lgcc", cwd=folder)
    said = must("qemu-system-arm", "-M", "mps2-an386", "-nographic", "-semihosting", "-kernel", os.path.join(folder, "board.elf"))
    said = {k: int(v) for k, v in re.findall(r"(\w+) (\d+)", said)}
    return flash(os.path.join(folder, "board.elf")) - flash(os.path.join(folder, "main.o")), said


def machine(folder):
    """ingot_vm.c, its header and its object, shared by all networks."""
    must(INGOT, "vm", "--emit", "-o", os.path.join(folder, "ingot_vm.c"))
    must(*GCC, "-DINGOT_VM_SINGLE", "-c", "-o", "ingot_vm.o", "ingot_vm.c", cwd=folder)


def measure(name, vm_folder):
    with tempfile.TemporaryDirectory() as folder:
        title, arrays = prepare(folder, name)
        with open(os.path.join(folder, "model.c"), "w") as f:
            f.write(MODEL % os.path.join(folder, "net.igb"))
        must(*GCC, "-c", "-o", "model.o", "model.c", cwd=folder)
        must(*GCC, "-c", "-o", "net.o", "net.c", cwd=folder)
        igb = os.path.getsize(os.path.join(folder, "net.igb"))
        vm, vm_said = on_board(folder, VM, [os.path.join(vm_folder, "ingot_vm.o"), "model.o"], ["-I", vm_folder])
        c, c_said = on_board(folder, C, ["net.o"], [])
        with open(os.path.join(folder, "net.h")) as f:
            weights = int(re.search(r"NET_WEIGHT_BYTES (\d+)", f.read())[1])
    ram = lambda said: said["memory"] + arrays + said["stack"]
    return title, vm - igb, igb, ram(vm_said), c - weights, weights, ram(c_said)


def table(rows):
    lines = ["| network | bytecode: interpreter | model file | RAM | C: code | weights | RAM |", "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    lines += ["| " + " | ".join([title, *(f"{x:,}" for x in numbers)]) + " |" for title, *numbers in rows]
    return "\n".join(lines) + "\n"


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--write", help="a document with the marks <!-- boards --> and <!-- end -->")
    p.add_argument("--only", help="one network")
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        machine(folder)
        text = table([measure(name, folder) for name in NETS if name == (o.only or name)])
    if not o.write:
        print(text, end="")
        return
    doc.write_between(o.write, "boards", text)


if __name__ == "__main__":
    main()
