"""Models as bytecode files: `ingot compile MODEL -o FILE.igb` and the commands that read them.

Outputs have the bits of the interpreter; the refusal of a malformed file names the byte.
test/unit/bytecode.c changes every byte of a small file.
"""
import os
import platform
import re
import shutil
import struct
from lib import npy, tfile
from lib.core import ROOT, Fail, Skip, Test, explain, need, run, tail
from suite import promises

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
    """A file gives the bits of the interpreter."""
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
    opened = both(env, "open", [DIGITS, "--max-shapes", "image:32x1x8x8"], [], ["--input", f"image=@{image}"])
    if b"[3,10]" not in must([env.ingot, "run", opened, "-d", "image:0=3"], "a size for made-up inputs").out:
        raise Fail("image:0=3 does not make three images")
    must([env.ingot, "run", opened, "-d", "image:0=33"], "a size out of bounds", 4)
    must([env.ingot, "run", opened, "-d", "image:1=2"], "a size that is another", 2)
    must([env.ingot, "run", opened, "-d", "nothing=2"], "a size of nothing", 2)
    counter = write(folder, "counter.ing", COUNTER)
    path = os.path.join(folder, "counter.igb")
    must([env.ingot, "compile", counter, "--state", "s=t", "-o", path], "state")
    got = must([env.ingot, "run", path, "--input", "x=[1,2]", "--steps", "3"], "steps").out.decode()
    if " 9 36" not in got:
        raise Fail(f"three steps of a counter: {got}")
    texts = [t for t in tfile.files("exec") if t.form == "graph" and "2000000000" not in t.body and "sym " not in t.body]
    for i, t in enumerate(texts[::max(1, len(texts) // 12)]):
        model = t.write(env)
        probe = os.path.join(folder, "probe.igb")
        made = run([env.ingot, "compile", model, "--quiet", "-o", probe], LIMIT)
        if made.rc == 0 and "out of range" not in run([env.ingot, "run", probe, "--seed", "5", "--quiet"], LIMIT).text():  # a file does not say which inputs are indices
            both(env, f"text{i}", [model], ["--seed", "5"], [])


TURNS = """graph (%n "n": i64[], %x "x": f64[], %y "y": f64[]) {
  %t: bool[] = const {true}
  %zero: f64[] = const {0}
  %s: f64[] = loop(%n, %t, %zero) {scans = 0} (%i: i64[], %c: bool[], %w: f64[]) {
    %a: f64[] = add(%x, %y)
    %b: f64[] = mul(%w, %a)
    %v: f64[] = add(%b, %y)
    return %t, %v
  }
  return %s "s"
}
"""


def turns(env):
    """A loop executes only what changes: single elements stay in registers, unused values are not stored, count and jump are one
    instruction."""
    path = write(env.scratch("bytecode", "turns"), "turns.ing", TURNS)
    code = [x.split() for x in must([env.need_ingot(), "opt", path, "--dump=bytecode"], "dump").out.decode().split("\ncode\n")[1].splitlines()]
    end = next(i for i, x in enumerate(code) if x[1] == "next")
    begin = next(i for i, x in enumerate(code) if x[0] == code[end][-1].lstrip("@") + ":")
    inside = [x[1] for x in code[begin:end + 1]]
    if inside != ["mad_d", "next"]:
        raise Fail(f"in every turn: {inside}")
    for n, sum_ in ((0, "0"), (5, "2343")):
        got = must([env.ingot, "run", path, "--engine", "vm", "--input", f"n={n}", "--input", "x=2", "--input", "y=3"], f"{n} turns").out.decode()
        if got.split()[-1] != sum_:
            raise Fail(f"{n} turns: {got}")


EPILOGUE = """graph (%x "x": i32[4,24], %m "m": i32[4,1], %n "n": i32[4,1]) {
  %one: i32[] = const {1}
  %zero: i32[] = const {-128}
  %s: i32[4,24] = shl(%x, %one)
  %r: i32[4,24] = requant(%s, %m, %n)
  %z: i32[4,24] = add(%r, %zero)
  %y: i8[4,24] = cast(%z) {to = i8, sat = 1}
  return %y "y"
}
"""


def epilogue(env):
    """Fixed-point scaling of sums uses no general instruction, which evaluates lane by lane."""
    path = write(env.scratch("bytecode", "epilogue"), "epilogue.ing", EPILOGUE)
    for march in ("scalar", "avx2", "avx512"):
        code = must([env.need_ingot(), "opt", path, "--march", march, "--dump=bytecode"], "dump").out.decode().split("\ncode\n")[1]
        names = [x.split()[1].split("/")[0] for x in code.splitlines()]
        if "requant" not in names or {"gen1", "gen2", "gen3"} & set(names):
            raise Fail(f"{march}: {names}")


DEPTHWISE = """graph (%x "x": f32[1,16,14,20]) {{
  %u: f32[16,1,5,5] = iota {{shape = [16,1,5,5], axis = 3, to = f32}}
  %v: f32[16,1,5,5] = iota {{shape = [16,1,5,5], axis = 0, to = f32}}
  %k: f32[] = const {{0.375}}
  %p: f32[16,1,5,5] = mul(%u, %k)
  %w: f32[16,1,5,5] = sub(%p, %v)
  %y: f32[1,16,{h},{w}] = conv(%x, %w) {{group = 16, stride = [{stride},{stride}], dilation = [1,1], pad_lo = [2,2], pad_hi = [2,2], input_dilation = [1,1]}}
  return %y "y"
}}
"""


def taps(env):
    """The unrolled taps of a depthwise convolution become panels with loops, with the bits of the interpreter."""
    folder = env.scratch("bytecode", "taps")
    for stride, h, w in ((1, 14, 20), (2, 7, 10)):
        path = write(folder, f"stride{stride}.ing", DEPTHWISE.format(stride=stride, h=h, w=w))
        for march in ("avx2", "avx512"):
            code = must([env.need_ingot(), "opt", path, "--march", march, "--dump=bytecode"], "dump").out.decode().split("\ncode\n")[1]
            names = [x.split()[1].split("/")[0] for x in code.splitlines()]
            if names.count("vfmam_f") > names.count("panel") or "panel" not in names:
                raise Fail(f"stride {stride}, {march}: {names.count('panel')} panels, {names.count('vfmam_f')} products of their own")
            outs = {}
            for engine in ("interp", "vm"):
                to = os.path.join(folder, engine + ".npz")
                must([env.ingot, "run", path, "--march", march, "--engine", engine, "--seed", "4", "--quiet", "--output", to], engine)
                outs[engine] = {k: npy.encode(v) for k, v in npy.load_npz(to).items()}
            if outs["interp"] != outs["vm"]:
                raise Fail(f"stride {stride}, {march}: outputs differ")


def refused(env):
    folder = env.scratch("bytecode", "refused")
    path = os.path.join(folder, "d.igb")
    must([env.need_ingot(), "compile", DIGITS, "-d", "batch=1", "-o", path], "compile")
    for args in (["run", path, "--engine", "interp"], ["compile", path, "-o", os.path.join(folder, "d.c")], ["opt", path], ["verify", path]):
        got = must([env.ingot, *args], " ".join(args), 3)
        if "the file is bytecode" not in got.text():
            raise Fail(f"{args}: {got.text()}")
    for args in (["--weights", "text"], ["--threads", "8"], ["--tune"], ["--cc", "gcc"], [os.path.join(folder, "nothing.onnx")]):
        got = must([env.ingot, "compile", DIGITS, "-d", "batch=1", *args, "-o", path], f"for C: {args}", 2)
        if args[0].startswith("--") and args[0] + ":" not in got.text():
            raise Fail(f"the option is not named: {got.text()}")
    for args in (["-d", "batch=3"], ["--precise"], ["--march", "scalar"], ["--threads", "4"], ["--context", "10"]):
        got = must([env.ingot, "run", path, *args], f"for compile: {args}", 2)
        if (args[0] if args[0] != "-d" else "batch") not in got.text():
            raise Fail(f"the option is not named: {got.text()}")
    for args in (["inspect"], ["inspect", "--json"], ["bench", "--seconds", "0.05"]):
        must([env.ingot, args[0], path, *args[1:]], args[0])
    with open(path, "rb") as f:
        data = bytearray(f.read())
    for what, changed, place in (("cut off", data[:-64], "byte 16: is truncated"), ("changed", data[:-100] + bytes([data[-100] ^ 1]) + data[-99:], "byte 24: is damaged"),
                                 ("newer", data[:8] + b"\7" + data[9:], "is bytecode of version 7 ("),
                                 ("of other tables", data[:12] + bytes([data[12] ^ 1]) + data[13:], "): compile the model again"), ("short", data[:40], "byte 0: is not bytecode")):
        bad = os.path.join(folder, "bad.igb")
        with open(bad, "wb") as f:
            f.write(changed)
        for verb in ("run", "inspect"):
            got = must([env.ingot, verb, bad], what, 4)
            if place not in got.text():
                raise Fail(f"{what}: {got.text()}")


def signed(data):
    """Recomputes the checksum of an .igb file, so that the verifier sees the changes."""
    data, h = bytearray(data), 0x9e3779b97f4a7c15
    for at in range(0, len(data), 8):
        word = 0 if at == 24 else int.from_bytes(data[at:at + 8], "little")
        h = ((h ^ word) * 0xd6e8feb86659fd93) & (1 << 64) - 1
        h ^= h >> 32
    data[24:32] = h.to_bytes(8, "little")
    return bytes(data)


FORGER = r"""#include "ingot_vm.h"
#include <stdio.h>
static uint64_t file[8192];
int main(int n, char **arg) {
  FILE *f = fopen(arg[n - 1], "rb");
  IngotVm vm;
  int e = f ? ingot_vm_open(file, fread(file, 1, sizeof file, f), &vm) : -1;
  printf("%d %s\n", e, e > 0 ? vm.why : "");
  return 0;
}
"""


def forged(env):
    """Files with a valid checksum: wrong positions of inputs and outputs, an arena beyond its buffers, endless loops."""
    folder = env.scratch("bytecode", "forged")
    path, bad = (os.path.join(folder, name) for name in ("d.igb", "bad.igb"))
    must([env.need_ingot(), "compile", DIGITS, "-d", "batch=1", "-o", path], "compile")
    with open(path, "rb") as f:
        data = f.read()
    must([env.ingot, "vm", "--emit", "-o", os.path.join(folder, "ingot_vm.c")], "vm --emit")
    main = write(folder, "main.c", FORGER)
    alone = os.path.join(folder, "alone")
    must(["cc", "-std=c99", "-fsanitize=undefined", "-fno-sanitize-recover=all", main, os.path.join(folder, "ingot_vm.c"), "-o", alone], "the machine alone")
    section = lambda i: struct.unpack_from("<QQ", data, 56 + 16 * i)[0]  # noqa: E731
    assert signed(data) == data
    for at, value, why in ((section(3) + 8, 0xffffffff00000000, "the caller places them"), (section(3) + 16, 64, "the caller places them"),
                           (section(3) + 32 + 8, 64, "the caller places them"), (32, 16 << 30, "the arena is larger than its buffers")):
        with open(bad, "wb") as f:
            f.write(signed(data[:at] + struct.pack("<Q", value) + data[at + 8:]))
        got = run([env.ingot, "run", bad], 20, memory=1 << 30)
        if got.rc != 4 or why not in got.text():
            raise Fail(f"{value} at {at}: {explain(got)}: {got.text()}")
        if why not in (said := must([alone, bad], "open").out.decode()) and "was not made by ingot" not in said:
            raise Fail(f"alone: {value} at {at}: {said}")
    with open(os.path.join(ROOT, "src", "back", "vm", "vmops.def")) as f:
        step = re.findall(r"^VM\((\w+), ", f.read(), re.M).index("next")  # a += b; to j while a < c
    (words, n), endless = struct.unpack_from("<QQ", data, 56), bytearray(data)
    for at in range(words, words + 4 * n, 4):
        if data[section(1) + (at - words) // 32] >> (at - words) // 4 % 8 & 1 and struct.unpack_from("<H", data, at)[0] == step:
            endless[at + 8:at + 12] = data[at + 4:at + 8]  # 0 += 0
    with open(bad, "wb") as f:
        f.write(signed(endless))
    got = run([env.ingot, "run", bad, "--max-steps", "1000000"], 20)
    if got.rc != 4 or "the run takes more than 1000000 steps (backward jumps and panel iterations), the limit of --max-steps" not in got.text():
        raise Fail(f"endless: {explain(got)}: {got.text()}")
    for args, rc in ((["--max-steps", "1000000"], 0), (["--max-steps", "5"], 3), (["--max-steps", "5", "--engine", "interp"], 2), (["--max-steps", "0"], 2)):
        must([env.ingot, "run", DIGITS, "-d", "batch=1", *args], " ".join(args), rc)


PROGRAM = """#include "ingot_vm.h"
#include "model.h"
enum { ROOM = 20000 };
static uint64_t memory[ROOM];
static float result[10];
static int same(IngotVm *vm, int64_t *size) {
  const IngotVmArray in[] = {{(void *)image, sizeof image}}, out[] = {{result, sizeof result}};
  if (ingot_vm_run(vm, memory, sizeof memory, size, 0, 0, in, out)) return 0;
  for (size_t i = 0; i < sizeof result; i++)
    if (((const unsigned char *)result)[i] != expected[i]) return 0;
  return 1;
}
static int check(void) {
  IngotVm vm;
  int64_t size[2] = {1, 0}, dim[INGOT_VM_RANK], least, most;
  const IngotVmArray in[] = {{(void *)image, sizeof image - 4}}, out[] = {{result, sizeof result}};
  if (ingot_vm_open(model, sizeof model - 64, &vm) != INGOT_VM_BAD) return 1;
  if (ingot_vm_open(model, sizeof model, &vm) || vm.memory_bytes > sizeof memory) return 2;
  if (vm.inputs != 1 || vm.outputs != 1 || vm.symbols != SYMBOLS) return 3;
  if (SYMBOLS && (ingot_vm_symbol(&vm, 0, &least, &most) || most != 3)) return 4;
  IngotVmPort p = ingot_vm_port(&vm, 1);
  if (ingot_vm_shape(&vm, 1, NULL, dim) != (SYMBOLS ? -1 : 2) || ingot_vm_shape(&vm, 2, size, dim) != -1) return 9;
  if (ingot_vm_shape(&vm, 1, size, dim) != 2 || p.rank != 2 || p.element_bytes != 4 || dim[0] != 1 || dim[1] != 10) return 5;
  size_t few = (size_t)vm.memory_bytes - 1;
  if (ingot_vm_reset(&vm, memory, few) != INGOT_VM_REFUSED || vm.why[10] != 't') return 10;
  if (ingot_vm_run(&vm, memory, few, SYMBOLS ? size : NULL, 0, 0, (IngotVmArray[]){{(void *)image, sizeof image}}, out) != INGOT_VM_REFUSED) return 11;
  if (ingot_vm_reset(&vm, memory, sizeof memory)) return 12;
  if (!same(&vm, SYMBOLS ? size : NULL) || !same(&vm, SYMBOLS ? size : NULL)) return 6;
  if (ingot_vm_run(&vm, memory, sizeof memory, SYMBOLS ? size : NULL, 0, 0, in, out) != INGOT_VM_REFUSED) return 7;
  if (ingot_vm_run(&vm, memory, sizeof memory, SYMBOLS ? size : NULL, 0, 0, (IngotVmArray[]){{(void *)image, sizeof image}},
                   (IngotVmArray[]){{result, sizeof result - 4}}) != INGOT_VM_REFUSED) return 13;
  return ingot_vm_run(&vm, memory, sizeof memory, SYMBOLS ? size : NULL, 0, 5, (IngotVmArray[]){{(void *)image, sizeof image}}, out) == INGOT_VM_TIRED ? 0 : 8;
}
"""
WARN = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
M4 = ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"]
# Bytes on a Cortex-M4, with all instructions: with all functions, and without those computed in double.
MOST_CODE = {"all": 40 << 10, "single": 27 << 10}


def around(env, name, more):
    """Creates a folder with the machine, a model, and the interpreter's result for an image."""
    folder = env.scratch("bytecode", name)
    path = {x: os.path.join(folder, x) for x in ("ingot_vm.c", "ingot_vm.h", "model.h", "model.igb", "image.npy", "out.npz", "main.c", "board.c", "board.ld")}
    image = npy.Array("f32", (1, 1, 8, 8), [i % 17 / 16 for i in range(64)])
    npy.save(path["image.npy"], image)
    must([env.need_ingot(), "vm", "--emit", "-o", path["ingot_vm.c"]], "emit")
    must([env.ingot, "compile", DIGITS, *more, "-o", path["model.igb"]], "compile")
    must([env.ingot, "run", DIGITS, *more, "--engine", "interp", "--input", f"image=@{path['image.npy']}", "--output", path["out.npz"]], "interp")
    result = struct.pack("<10f", *next(iter(npy.load_npz(path["out.npz"]).values())).data)
    with open(path["model.igb"], "rb") as f:
        model = f.read()
    numbers = lambda raw: ",".join(map(str, raw))
    with open(path["model.h"], "w") as f:
        f.write(f"__attribute__((aligned(64))) static const unsigned char model[] = {{{numbers(model)}}};\n"
                f"static const unsigned char expected[] = {{{numbers(result)}}};\nenum {{ SYMBOLS = {len(more) > 1 and more[0] != '-d'} }};\n"
                .replace("True", "1").replace("False", "0"))
        f.write(f"static const float image[] = {{{','.join(map(str, image.data))}}};\n")
    return folder, path


def own(cc, symbols):
    """Undefined and defined symbols of an object file."""
    taken = [x for x in symbols if " U " in x and x.split()[-1] not in ("memcpy", "memset", "memmove")]
    shown = [x for x in symbols if (" T " in x and " ingot_vm_" not in x) or " B " in x or " D " in x]
    if taken or shown:
        raise Fail(f"{cc}: {taken + shown}")


def alone(env):
    """The one-file machine, with two compilers: the bits of the interpreter, no foreign names, no library."""
    for name, more in (("fixed", ["-d", "batch=1"]), ("open", ["--max-shapes", "image:3x1x8x8"])):
        folder, path = around(env, "alone_" + name, more)
        with open(path["main.c"], "w") as f:
            f.write(PROGRAM + "int main(void) { return check(); }\n")
        for cc in [x for x in ("gcc", "clang") if shutil.which(x)]:
            program, machine = os.path.join(folder, cc), os.path.join(env.scratch("bytecode", "alone_fixed"), cc + ".o")
            if name == "fixed":
                must([cc, *WARN, "-O1", "-fno-pie", "-ffp-contract=off", "-c", "-o", machine, path["ingot_vm.c"]], "the machine")
                own(cc, must(["nm", machine], "nm").out.decode().split("\n"))
            must([cc, *WARN, "-no-pie", "-fno-pie", "-o", program, path["main.c"], machine], "link")
            must([program], f"{name} by {cc}")
        if name == "fixed":  # the machine built for small code
            must(["cc", *WARN, "-Os", "-no-pie", "-fno-pie", "-ffp-contract=off", "-o", program, path["main.c"], path["ingot_vm.c"]], "the machine with -Os")
            must([program], f"{name}, small")


# Runs every given file on generated inputs; prints return codes and a hash of the results.
MANY = """#include "ingot_vm.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int64_t size[64], dim[INGOT_VM_RANK];
static size_t bytes_of(const IngotVm *vm, uint32_t i) {
  IngotVmPort p = ingot_vm_port(vm, i);
  size_t n = p.element_bytes;
  ingot_vm_shape(vm, i, size, dim);
  for (uint32_t k = 0; k < p.rank; k++) n *= (size_t)dim[k];
  return n;
}
static void fill(IngotVmPort p, void *at, size_t n) {
  for (size_t i = 0; i < n / p.element_bytes; i++) {
    const int x = (int)(i * 7 % 11) - 4;
    if (!strcmp(p.type, "f32")) ((float *)at)[i] = (float)x / 4;
    else if (!strcmp(p.type, "f64")) ((double *)at)[i] = x / 4.0;
    else if (!strcmp(p.type, "i32")) ((int32_t *)at)[i] = x;
    else if (!strcmp(p.type, "i64")) ((int64_t *)at)[i] = x;
    else memset((char *)at + i * p.element_bytes, (x + 4) & 3, p.element_bytes);
  }
}
static int one(const char *path) {
  static uint64_t file[1 << 17];
  IngotVm vm;
  IngotVmArray in[32], out[32];
  FILE *f = fopen(path, "rb");
  if (!f) return -1;
  const size_t n = fread(file, 1, sizeof file, f);
  fclose(f);
  if (n == sizeof file || ingot_vm_open(file, n, &vm) || vm.inputs > 32 || vm.outputs > 32 || vm.symbols > 64) return -2;
  for (uint32_t i = 0; i < vm.symbols; i++) {
    int64_t most;
    ingot_vm_symbol(&vm, i, &size[i], &most);
    if (size[i] < 3 && most >= 3) size[i] = 3;
  }
  void *memory = calloc(1, (size_t)vm.memory_bytes);
  for (uint32_t i = 0; i < vm.inputs + vm.outputs; i++) {
    const size_t all = bytes_of(&vm, i);
    IngotVmArray a = {calloc(1, all + 8), all};
    if (i < vm.inputs) fill(ingot_vm_port(&vm, i), a.at, all), in[i] = a;
    else out[i - vm.inputs] = a;
  }
  ingot_vm_reset(&vm, memory, (size_t)vm.memory_bytes);
  const int got = ingot_vm_run(&vm, memory, (size_t)vm.memory_bytes, size, 7, 1 << 24, in, out);
  uint64_t sum = 14695981039346656037u;
  for (uint32_t i = 0; i < vm.outputs; i++)
    for (size_t k = 0; k < out[i].bytes; k++) sum = (sum ^ ((unsigned char *)out[i].at)[k]) * 1099511628211u;
  printf("%d %016llx\\n", got, (unsigned long long)sum);
  return 0;
}
int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    const int no = one(argv[i]);
    if (no) printf("%d\\n", no);
  }
  return 0;
}
"""


# Cases that programs of exec do not cover: products and sums of f64, of int8, requantization.
LAYERS = {
    "f64": """graph (%a "a": f64[9,17], %b "b": f64[17,24], %v "v": f64[200]) {
  %y: f64[9,24] = contract(%a, %b) {spec = "mk,kn->mn"}
  %s: f64[] = contract(%v, %v) {spec = "k,k->"}
  return %y "y", %s "s"
}
""",
    "bytes": """graph (%a "a": u8[6,32], %b "b": f32[6,32], %t "t": i32[32,16]) {
  %w: i8[32,16] = cast(%t) {to = i8}
  %z: f32[] = const {128}
  %r: f32[] = const {0.0625}
  %x: i32[6,32] = cast(%a) {to = i32}
  %k: i32[32,16] = cast(%w) {to = i32}
  %s: i32[6,16] = contract(%x, %k) {spec = "mk,kn->mn"}
  %f: f32[6,16] = cast(%s) {to = f32}
  %g: f32[6,16] = mul(%f, %r)
  %h: f32[6,16] = round(%g)
  %i: f32[6,16] = add(%h, %z)
  %q: u8[6,16] = cast(%i) {to = u8, sat = 1}
  %m: f32[6] = reduce_max(%b) {axes = [1], keep = 0}
  return %q "q", %m "m"
}
""",
}


def small(env):
    """The machine built for small code computes the same: programs of exec, and layers of every kind."""
    folder = env.scratch("bytecode", "small")
    machine, source = os.path.join(folder, "ingot_vm.c"), write(folder, "many.c", MANY)
    must([env.need_ingot(), "vm", "--emit", "-o", machine], "emit")
    files = []
    texts = [t for t in tfile.files("exec") if t.form == "graph" and "2000000000" not in t.body]
    layers = [write(folder, name + ".ing", text) for name, text in LAYERS.items()]
    for x in layers:
        must([env.ingot, "compile", x, "--quiet", "-o", os.path.join(folder, "probe.igb")], x)
    jobs = [([t.write(env)], []) for t in texts] + [([x], ["--march", y]) for x in layers for y in ("scalar", "avx2")] + [([DIGITS, "-d", "batch=1"], ["--march", x]) for x in ("scalar", "sse2", "avx2")]
    for i, (model, more) in enumerate(jobs):
        path = os.path.join(folder, f"{i}.igb")
        if run([env.ingot, "compile", *model, *more, "--quiet", "-o", path], LIMIT).rc == 0:
            files.append(path)
    if len(files) < 60:
        raise Fail(f"only {len(files)} programs became bytecode")
    lines = {}
    for how in ("-O1", "-Os"):
        program = os.path.join(folder, how[1:])
        must(["cc", "-std=c99", how, "-ffp-contract=off", "-o", program, source, machine], f"the machine with {how}")
        lines[how] = must([program, *files], how).out.decode().splitlines()
    ran = sum(x.startswith("0 ") for x in lines["-O1"])
    if lines["-O1"] != lines["-Os"] or len(lines["-O1"]) != len(files) or ran < len(files) * 3 // 4:
        bad = [f for f, a, b in zip(files, lines["-O1"], lines["-Os"]) if a != b]
        raise Fail(f"{ran} of {len(files)} ran; results differ: {bad[:5]}")


def board(env):
    """On a simulated Cortex-M4, where its size has a bound."""
    need("arm-none-eabi-gcc")
    need("qemu-system-arm")
    folder, path = around(env, "board", ["-d", "batch=1"])
    start = promises.BOARD[promises.BOARD.index("extern uint32_t"):promises.BOARD.index("__attribute__((aligned(64)))")].replace("%%0", "%0")
    with open(path["board.c"], "w") as f:
        f.write(PROGRAM + start + "void reset(void) {\n  *(volatile uint32_t *)0xe000ed88 |= 0xf << 20;\n"
                "  __asm__ volatile(\"dsb\\n isb\");\n  leave((uint32_t)check());\n  for (;;) continue;\n}\n")
    with open(path["board.ld"], "w") as f:
        f.write(promises.SCRIPT)
    for kind, more in (("all", []), ("single", ["-DINGOT_VM_SINGLE"])):
        made, image = os.path.join(folder, kind + ".o"), os.path.join(folder, kind + ".elf")
        must(["arm-none-eabi-gcc", *M4, *WARN, "-Os", *more, "-ffreestanding", "-c", "-o", made, path["ingot_vm.c"]], "the machine")
        size = int(must(["arm-none-eabi-size", made], "size").out.decode().splitlines()[1].split()[0])
        print(f"Cortex-M4: the machine of the bytecode has {size} bytes ({kind})", flush=True)
        if size > MOST_CODE[kind]:
            raise Fail(f"{kind}: {size} bytes of code, the bound is {MOST_CODE[kind]}")
        must(["arm-none-eabi-gcc", *M4, "-std=c99", "-Os", "-ffreestanding", "-nostdlib", "-T", path["board.ld"], "-o", image, path["board.c"], made, "-lgcc"], "link")
        must(["qemu-system-arm", "-M", "mps2-an386", "-nographic", "-semihosting", "-kernel", image], "the board")
    must([env.ingot, "compile", DIGITS, "-d", "batch=1", "--precise", "-o", path["model.igb"]], "compile --precise")
    with open(path["model.igb"], "rb") as f:
        model = ",".join(map(str, f.read()))
    with open(path["main.c"], "w") as f:
        f.write('#define INGOT_VM_SINGLE\n#include "ingot_vm.c"\n__attribute__((aligned(64))) static const unsigned char model[] = {' + model + "};\n"
                "int main(void) { IngotVm vm; return ingot_vm_open(model, sizeof model, &vm) == INGOT_VM_BAD && vm.why[0] == 't' ? 0 : 1; }\n")
    program = os.path.join(folder, "precise")
    must(["gcc", *WARN, "-O1", "-o", program, path["main.c"]], "a machine without double")
    must([program], "a model with functions in double on it")


# A panel of f16 values at odd multiples of 2: x = 0 1 2 .., from the second on; y = 1 everywhere.
PANEL = """#include "back/vm/vm.h"
int main(void) {
  static _Alignas(64) u64 file[16];
  static _Alignas(64) u32 y[8];
  static _Alignas(64) u16 x[8];
  const u32 code[] = {VM_panel | 8u << 16, 4, 1, 1, VP_dot_i16x2_b, 0, 0, 1, 0, 2, 1, 0, 0, 2, 0, 1, 2, 0, 0, 0, 0, 0};
  VmMem buf[] = {{(u8 *)x, sizeof x}, {(u8 *)y, sizeof y}};
  Vm m = {.file = file, .buf = buf};
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 0;
  for (u32 i = 0; i < 8; i++) x[i] = (u16)i, y[i] = 0x10001;
  file[0] = 1;
  file[1] = 3;
  if (!vm_tile_avx2(&m, code, 8)) return 1;
  for (u32 i = 0; i < 8; i++)
    if (((const u32 *)(file + 4))[i] != 1 + 2 + 3 + 4 + 5 + 6) return 2;
  return 0;
}
"""


def anywhere(env):
    """Vector tiles load words of int8 and f16 at any address."""
    if platform.machine() != "x86_64":
        raise Skip("no vectors of x86")
    folder = env.scratch("bytecode", "anywhere")
    source, program = write(folder, "panel.c", PANEL), os.path.join(folder, "panel")
    must(["gcc", "-std=gnu11", "-O0", "-I", os.path.join(ROOT, "src"), "-mavx2", "-mfma", "-DVM_AVX2", "-fsanitize=alignment", "-fno-sanitize-recover=all",
          "-o", program, source, os.path.join(ROOT, "src/back/vm/tile.c")], "a tile")
    must([program], "words at any byte")


def tests(env):
    return [Test("bytecode/anywhere", lambda: anywhere(env), cost=2), Test("bytecode/alone", lambda: alone(env), cost=15), Test("bytecode/small", lambda: small(env), cost=15),
            Test("bytecode/board", lambda: board(env), cost=8),
            Test("bytecode/same", lambda: same(env), cost=4), Test("bytecode/turns", lambda: turns(env), cost=1), Test("bytecode/taps", lambda: taps(env), cost=1), Test("bytecode/epilogue", lambda: epilogue(env), cost=1), Test("bytecode/refused", lambda: refused(env), cost=2), Test("bytecode/forged", lambda: forged(env), cost=2)]
