"""Engine jit: one process (test/unit/agree.c) runs many models on interp and on jit and compares bits, because LLVM takes longer
to load than a small model to compile.

`make gen` compares the two engines on random graphs.
Without LLVM, or in a build without it, the tests are skipped.
"""
import ctypes
import glob
import os
import random
import re
import shutil
import struct
from lib import cpu, npy, onnxfile, tfile
from lib.core import ROOT, Fail, Skip, Test, explain, run, tail
from suite import bake, official, play

PIECES, EVERY = 4, 5  # every fifth official case, lowered for alternating targets


def need(env):
    """The LLVM version that ingot finds."""
    got = run([env.need_ingot(), "--version"], 60).out.decode()
    found = re.search(r"\(LLVM (\d+)\)", got)
    if not found:
        raise Skip("ingot finds no LLVM")
    return int(found[1])


def agree(env, name, lines):
    need(env)
    program = os.path.join(env.build, "unit", "agree")
    if not os.path.exists(program):
        raise Skip("build/unit is not built")
    path = os.path.join(env.scratch("jit"), name)
    with open(path, "w") as f:
        f.writelines(" ".join(words) + "\n" for words in lines)
    got = run([program, path], 600, cwd=ROOT, merge=True)
    text = got.out.decode("utf-8", "replace")
    if got.rc or not re.search(r"^[1-9]\d* agree", text, re.M):
        raise Fail(f"{explain(got)}: {tail(text, 12)}")


def texts(env):
    """Graphs of test/exec, plain and for vectors."""
    out = []
    for t in tfile.files("exec"):
        if t.form == "graph":
            path = t.write(env)
            out += [(path, "-", "-"), (path, "-", "native")]
    agree(env, "exec", out)


def cases(env, piece):
    if not env.data:
        raise Skip("no official test data")
    all_cases = [c for c in official.index(env)[0] if c["kind"] != "light"]
    target = "avx512" if cpu.can_run("avx512") else "avx2" if cpu.can_run("avx2") else "-"
    some = [c for i, c in enumerate(all_cases) if i % (PIECES * EVERY) == piece * EVERY]
    agree(env, f"official{piece}", [(c["model"], c["data"] or "-", ("-", target)[i % 2]) for i, c in enumerate(some)])


def headers(env):
    """functions.def agrees with LLVM's headers, and types.h with their numbers."""
    config = next((c for v in ("", *(f"-{n}" for n in range(19, 13, -1))) if (c := shutil.which("llvm-config" + v))), None)
    if not config:
        raise Skip("llvm-config is not installed")
    include = run([config, "--includedir"], 20).out.decode().strip()
    if not os.path.exists(os.path.join(include, "llvm-c", "Core.h")):
        raise Skip("the headers of LLVM are not installed")
    path = os.path.join(env.scratch("jit"), "headers.c")
    own = open(os.path.join(ROOT, "src", "back", "llvm", "types.h")).read()
    numbers = ""
    for body in re.findall(r"typedef enum \w+ \{(.*?)\}", own, re.S):
        value = -1
        for name, given in re.findall(r"(LLVM\w+)(?: = (\d+))?", body):
            value = int(given) if given else value + 1
            numbers += f"_Static_assert({name} == {value}, \"{name}\");\n"
    with open(path, "w") as f:
        f.write("#include <llvm-c/Core.h>\n#include <llvm-c/Analysis.h>\n#include <llvm-c/TargetMachine.h>\n#include <llvm-c/LLJIT.h>\n"
                "#include <llvm-c/Orc.h>\n#include <llvm-c/Error.h>\n#include <llvm-c/Transforms/PassBuilder.h>\n"
                "#include <llvm/Config/llvm-config.h>\n#if LLVM_VERSION_MAJOR < 15\n#define LLVMOrcCSymbolMapPair LLVMJITCSymbolMapPair\n#endif\n"
                "#if LLVM_VERSION_MAJOR > 17 /* its texts are const there */\nLLVMValueRef LLVMInlined(LLVMTypeRef, char *, size_t, char *, "
                "size_t, LLVMBool, LLVMBool, LLVMInlineAsmDialect, LLVMBool);\n#define LLVMGetInlineAsm LLVMInlined\n#endif\n"
                "#define LF(r, n, p) _Static_assert(__builtin_types_compatible_p(__typeof__(n), r p), #n);\n"
                '#include "back/llvm/functions.def"\n' + numbers)
    got = run(["cc", "-fsyntax-only", "-I" + os.path.join(ROOT, "src"), "-I" + include, path], 60)
    if got.rc:
        raise Fail(tail(got.text(), 8))


def absent(env):
    """Without the library, or in a build without LLVM, ingot works and says what is missing."""
    need(env)
    model = os.path.join(ROOT, "models", "digits.onnx")
    command = [env.ingot, "run", model, "-d", "batch=1", "--quiet", "--engine"]
    got = run([*command, "interp"], 60, env={"INGOT_LLVM": "/nowhere/libLLVM.so"})
    if got.rc:
        raise Fail(f"interp: {explain(got)}: {tail(got.text())}")
    got = run([*command, "jit"], 60, env={"INGOT_LLVM": "/nowhere/libLLVM.so"})
    if got.rc != 3 or "LLVM" not in got.text():
        raise Fail(f"jit: {explain(got)}, expected exit 3: {tail(got.text())}")


def kept(env):
    """Cached code is used, one file per program; a truncated or changed file is replaced."""
    need(env)
    folder, model = env.scratch("jit", "kept"), os.path.join(ROOT, "models", "digits.onnx")
    shutil.rmtree(folder)
    os.makedirs(folder)

    def result(*args):
        got = run([env.ingot, "run", model, "-d", "batch=2", "--quiet", "--seed", "5", "--engine", "jit", *args], 60)
        if got.rc:
            raise Fail(f"{explain(got)}: {tail(got.text())}")
        return got.out

    plain, keep = result(), f"--keep-code={folder}"
    first = result(keep)
    (name,) = os.listdir(folder)
    path = os.path.join(folder, name)
    whole, made = open(path, "rb").read(), os.stat(path).st_ino
    again, same = result(keep), os.stat(path).st_ino == made
    with open(path, "wb") as f:
        f.write(whole[:-100])
    cut = result(keep)
    if not same or open(path, "rb").read() != whole:
        raise Fail("code that was there was made again, or what was cut off was not")
    os.chmod(path, 0o664)
    open_file = result(keep), os.stat(path).st_mode & 0o777
    if open_file != (plain, 0o600):
        raise Fail(f"a file that others can write to is not made anew: {open_file[1]:o}")
    os.chmod(folder, 0o777)
    before = os.stat(path).st_ino
    got = run([env.ingot, "run", model, "-d", "batch=2", "--seed", "5", "--engine", "jit", keep], 60)
    os.chmod(folder, 0o755)
    if got.rc or "chmod" not in got.text() or os.stat(path).st_ino != before:
        raise Fail(f"a folder that others can write to is used: {got.text()}")
    vectors = result(keep, "--march", "native"), result("--march", "native")
    if len({plain, first, again, cut}) != 1 or vectors[0] != vectors[1] or len(os.listdir(folder)) != 2:
        raise Fail("results differ, or programs share a file")
    other = os.path.join(folder, "ingot")
    shutil.copy(env.ingot, other)
    got = run([other, "run", model, "-d", "batch=2", "--quiet", "--seed", "5", "--engine", "jit", keep], 60)
    if got.rc or got.out != plain or len(os.listdir(folder)) != 4:
        raise Fail(f"an ingot that was built again takes the code of the one before: {explain(got)}")


def statuses(env):
    """Two programs that differ only in which checks share a message do not share code, because the code contains numbers of
    checks."""
    need(env)
    folder = env.scratch("jit", "statuses")
    sums = {"one": [("Sum", ["x", "y", "y", "w"], ["z"])], "two": [("Add", ["x", "y"], ["s"]), ("Add", ["s", "y"], ["t"]), ("Add", ["t", "w"], ["z"])]}
    for name, nodes in sums.items():
        g = onnxfile.Graph()
        for op, ins, outs in nodes:
            g.node(op, ins, outs)
        for x, dim in (("x", "N"), ("y", "M"), ("w", "K")):
            g.input([dim], name=x)
        g.output("z", ["N"])
        with open(os.path.join(folder, name + ".onnx"), "wb") as f:
            f.write(onnxfile.model(g))
        got = run([env.ingot, "run", name + ".onnx", "--max-shapes", "x:8,y:8,w:8", "--engine", "jit", "--keep-code=.", "--quiet",
                   "--input", "x=[1,2]", "--input", "y=[1,2]", "--input", "w=[1,2,3]"], 60, cwd=folder)
        if got.rc != 4 or f"node {len(nodes) - 1} " not in got.text() or "K is neither" not in got.text():
            raise Fail(f"{name}: {explain(got)}: {tail(got.text())}")


MAIN = """#include <stdio.h>
#include "net.h"
_Alignas(64) static unsigned char arena[NET_ARENA_BYTES];
static float x[NET_INPUT0_ELEMENTS], y[NET_OUTPUT0_ELEMENTS];
int main(void) {
  for (int i = 0; i < NET_INPUT0_ELEMENTS; i++) x[i] = (float)(i * 37 % 17) / 16;
  printf("%d %s %s %s\\n", net_run(arena, x, y), net_target(), net_why(0), net_why(net_run(0, x, y)));
  for (int i = 0; i < NET_OUTPUT0_ELEMENTS; i++) printf("%a\\n", (double)y[i]);
  return 0;
}
"""


def objects(env):
    """Object code by LLVM, linked into a program: the header and the bits of the C, and only names of the header."""
    need(env)
    folder, model = env.scratch("jit", "objects"), os.path.join(ROOT, "models", "digits.onnx")
    with open(os.path.join(folder, "main.c"), "w") as f:
        f.write(MAIN)

    def ok(*command):
        got = run(list(command), 120, cwd=folder)
        if got.rc:
            raise Fail(f"{' '.join(command[:3])}: {explain(got)}: {tail(got.text())}")
        return got.out

    printed = set()
    for march in ("scalar", "native"):
        printed.clear()
        for kind, via in ((".a", ["--no-selftest"]), (".o", ["--backend", "llvm"]), (".a", ["--backend", "llvm"]), (".so", ["--backend", "llvm"])):
            ok(env.ingot, "build", model, "-d", "batch=1", "--quiet", "--march", march, "--name", "net", "-o", "net" + kind, *via)
            ok("cc", "main.c", "./net" + kind, "-o", "main")
            printed.add(ok("./main"))
        if len(printed) != 1:
            raise Fail(f"{march}: C and LLVM differ")
    for triple in ("wasm32", "thumbv7em-none-eabihf,cortex-m4"):
        ok(env.ingot, "build", model, "-d", "batch=1", "--quiet", "--backend", "llvm", "--triple", triple, "-o", "other.o")
    for triple in ("x86_64-linux-gnu", "x86_64-linux-gnu,haswell", "x86_64-linux-gnu,,+sse3") if cpu.can_run("sse2") else ():
        ok(env.ingot, "build", model, "-d", "batch=1", "--quiet", "--backend", "llvm", "--triple", triple, "--march", "avx2", "-o", "other.o")
        if b"ymm" not in ok("objdump", "-d", "other.o"):
            raise Fail(f"{triple}: no vectors of avx2")
    names = {line.split()[-1]: line.split()[-2] for line in ok("nm", "-g", "net.o").decode().splitlines()}
    if {n for n, kind in names.items() if kind == "T"} != {"net_run", "net_why", "net_target"}:
        raise Fail(f"names: {names}")
    if any(kind == "U" and n not in ("memcpy", "memmove", "memset") for n, kind in names.items()):
        raise Fail(f"calls: {names}")


# Operations that CPUs lack: 12 vectors of four lanes and one scalar of each.
LACKED = [("f32", f"{op}({{a}})", "f32") for op in ("round", "floor", "ceil", "trunc")] + [
    ("f32", "cast.i8.sat({a})", "i8"), ("f32", "cast.u8.sat({a})", "u8"), ("f32", "cast.i16.sat({a})", "i16"),
    ("f32", "cast.u8.sat(round({a}) + {k}(3.0))", "u8"), ("f32", "cast.i8.sat(round({a}) + {k}(-7.0))", "i8"),
    ("i32", "cast.u8.sat({a})", "u8"), ("i32", "cast.i16.sat({a})", "i16"), ("i32", "cast.u32.sat({a})", "u32"),
    ("i32", "dot_i8x4({a}, {b}, {b})", "i32"), ("i32", "dot_i16x2({a}, {b}, {b})", "i32"), ("i32", "maddubs({a}, {b}, {b})", "i32"), ("i32", "psign({a}, {b})", "i32"), ("i32", "requant({a}, {b}, {b})", "i32"),
    ("f32", "cast.f32(cast.f16({a}))", "f32"), ("f32", "cast.f32(cast.bf16({a}))", "f32"), ("f32", "bitcast.u16(cast.f16({a}))", "u16"),
    ("f32", "bitcast.u16(max(cast.bf16({a}), cast.bf16({b}) * cast.bf16({a})))", "u16"),
    ("i32", "cast.f32(bitcast.f16(cast.u16(and({a}, {k}(48127:i32)))))", "f32"), ("i32", "cast.f32(bitcast.bf16(cast.u16({a})))", "f32")]
SPECIAL = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, -0.75, 127.5, -128.5, 255.4, 8388607.5, -8388609.0, 3e9, -3e9, 1e30, float("inf"),
           float("-inf"), float("nan"), 1e-40, -1e-40, 5.9e-8, -8.9e-8, 3.1e-5, 6.1e-5, 65519.9, 65520.0, -1e5]  # the largest f16, and larger numbers


def lacking(env):
    """Object code and C on CPUs that lack operations: the bits of the interpreter, which computes each operation directly."""
    need(env)
    cpu.need("sse2")
    folder = env.scratch("jit", "lacking")
    lines = ["prog lacking", "buf f: in f32[49]", "buf i: in i32[49]", "buf j: in i32[49]"]
    lines += [f"buf y{n}: out {to}[49]" for n, (_, _, to) in enumerate(LACKED)] + ['kernel "all" {']
    for n, (of, text, to) in enumerate(LACKED):
        a, b = ("f", "f") if of == "f32" else ("i", "j")
        lines.append("  for k in 0..12 {")
        lines.append(f"    y{n}[4 * k:4] = " + text.format(a=f"{a}[4 * k:4]", b=f"{b}[4 * k:4]", k="splat.4") + "\n  }")
        lines.append(f"  y{n}[48] = " + text.format(a=f"{a}[48]", b=f"{b}[48]", k=""))
    with open(os.path.join(folder, "net.ing"), "w") as f:
        f.write("\n".join([*lines, "}", ""]))
    draw = random.Random(1)
    reals = SPECIAL + [draw.uniform(-300, 300) for _ in range(19)] + [-7.5]
    ints = [[draw.choice([draw.getrandbits(32), draw.randint(-40000, 40000) & 0xffffffff, 0x80ff7f01, 0]) for _ in range(49)] for _ in range(2)]
    given = [struct.pack("49f", *reals)] + [struct.pack("49I", *x) for x in ints]
    results = {}
    for name, via in (("c", ["--no-selftest"]), ("llvm", ["--backend", "llvm"])):
        library = os.path.join(folder, name + ".so")
        got = run([env.ingot, "build", "net.ing", "--quiet", "--march", "sse2", "--name", "net", "-o", library, *via], 120, cwd=folder)
        if got.rc:
            raise Fail(f"{name}: {explain(got)}: {tail(got.text())}")
        out = [ctypes.create_string_buffer(49 * 4) for _ in LACKED]
        rc = ctypes.CDLL(library).net_run(ctypes.create_string_buffer(1 << 16), *given, *out)
        results[name] = [(rc, o.raw) for o in out]
    for name, kind, letter, data in (("f", "f32", "f", given[0]), ("i", "i32", "i", given[1]), ("j", "i32", "i", given[2])):
        npy.save(os.path.join(folder, name + ".npy"), npy.Array(kind, (49,), list(struct.unpack("49" + letter, data))))
    inputs = [word for name in "fij" for word in ("--input", f"{name}=@{name}.npy")]
    got = run([env.ingot, "run", "net.ing", "--engine", "interp", *inputs, "-o", "net.npz"], 120, cwd=folder)
    if got.rc:
        raise Fail(f"interp: {explain(got)}: {tail(got.text())}")
    judged = npy.load_npz_raw(os.path.join(folder, "net.npz"))
    for n, (_, text, to) in enumerate(LACKED):
        right = (0, judged[f"y{n}"][-49 * struct.calcsize(npy.KINDS[to][1]):].ljust(49 * 4, b"\0"))
        for name, got in results.items():
            if got[n] != right:
                raise Fail(f"{text}: interp {right[1].hex(' ', 4)}, {name} {got[n][0]} {got[n][1].hex(' ', 4)}")


REFUSED = [(2, "--backend", ["--backend", "gcc"]), (2, "--triple", ["--triple", "wasm32"]), (3, "--caller", ["--backend", "llvm", "--caller"]),
           (3, "--threads", ["--backend", "llvm", "--threads", "2"]), (3, "z80-none", ["--backend", "llvm", "--triple", "z80-none"]),
           (3, "--weights", ["--backend", "llvm", "--weights", "text"]), (3, "--optimize", ["--backend", "llvm", "-O", "3"]), (3, "--cc", ["--backend", "llvm", "--cc", "gcc"]),
           (3, "wasm32", ["--backend", "llvm", "--triple", "wasm32", "--march", "avx2"]), (3, "aarch64", ["--backend", "llvm", "--triple", "aarch64", "--march", "sse2"])]


def refused(env):
    """Models that LLVM cannot compile are refused by name."""
    need(env)
    for code, word, args in REFUSED:
        got = run([env.ingot, "build", os.path.join(ROOT, "models", "digits.onnx"), "-d", "batch=1", "--quiet", "-o",
                   os.path.join(env.scratch("jit"), "no.o"), *args], 60)
        if got.rc != code or word not in got.text():
            raise Fail(f"{args}: {explain(got)}, expected exit {code} and {word}: {tail(got.text())}")


def plain(env):
    """Objects have NAME_run, but not the other functions in the C of a language model or of several models; states start with
    zeros; bytecode is refused."""
    need(env)
    folder, digits = env.scratch("jit", "plain"), os.path.join(ROOT, "models", "digits.onnx")

    def no(word, *args):
        got = run([env.ingot, *args, "--quiet"], 60, cwd=folder)
        if got.rc != 3 or word not in got.text():
            raise Fail(f"{args}: {explain(got)}, expected exit 3 and {word}: {tail(got.text())}")

    with open(os.path.join(folder, "state.ing"), "w") as f:
        f.write(bake.PROG)
    shutil.copy(digits, os.path.join(folder, "more.onnx"))
    no("without --backend llvm", "build", "state.ing", "--backend", "llvm", "-o", "no.o")
    no("several models", "build", digits, "more.onnx", "--backend", "llvm", "-o", "no.o")
    got = run([env.ingot, "compile", digits, "-d", "batch=1", "--quiet", "-o", "m.igb"], 60, cwd=folder)
    if got.rc:
        raise Fail(f"{explain(got)}: {tail(got.text())}")
    no("bytecode", "opt", "--dump=llvm", "m.igb")


def talks(env):
    """Only the C of a language model has functions for text."""
    need(env)
    got = run([env.ingot, "build", play.made(env), "--context", "64", "--backend", "llvm", "--quiet", "-o", os.path.join(env.scratch("jit", "talks"), "no.o")], 60)
    if got.rc != 3 or "language model" not in got.text():
        raise Fail(f"{explain(got)}, expected exit 3: {tail(got.text())}")


def tests(env):
    return [Test("jit/refused", lambda: refused(env), cost=1), Test("jit/plain", lambda: plain(env), cost=1), Test("jit/talks", lambda: talks(env), cost=1),
            Test("jit/objects", lambda: objects(env), cost=5), Test("jit/lacking", lambda: lacking(env), cost=2),
            Test("jit/kept", lambda: kept(env), cost=2), Test("jit/statuses", lambda: statuses(env), cost=1),
            Test("jit/exec", lambda: texts(env), cost=10), Test("jit/headers", lambda: headers(env), cost=1),
            Test("jit/absent", lambda: absent(env), cost=1),
            *(Test(f"jit/official-{i}", lambda i=i: cases(env, i), cost=5) for i in range(PIECES))]
