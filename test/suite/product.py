"""`ingot build`: its products link, run and agree with the interpreter; refusals are clear. Needs a C compiler."""
import io
import json
import os
import shutil
import warnings
import zipfile
from lib import cpu, npy
from lib.core import ROOT, Fail, Skip, Test, explain, run, tail, want

CHECK = "product/libraries product/one_reader product/plain product/refusals"

MODEL = os.path.join(ROOT, "models", "digits.onnx")
CALLER = """#include "net.h"
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  static float x[NET_INPUT0_ELEMENTS], y[NET_OUTPUT0_ELEMENTS];
  void *a = aligned_alloc(NET_ARENA_ALIGN, (NET_ARENA_BYTES + 63) / 64 * 64);
  void *t = aligned_alloc(NET_ARENA_ALIGN, NET_SELFTEST_BYTES);
  int s = net_run(a, x, y), k = net_selftest(t), bad = net_run((char *)a + 1, x, y);
  printf("%d %d %d %d\\n", s, k, bad, NET_OUTPUT0_ELEMENTS);
  return 0;
}
"""


# Two models by turns in one arena, and each in a separate arena: the same bits.
SHARED = """#include "one.h"
#include "two.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define MOST (ONE_ARENA_BYTES > TWO_ARENA_BYTES ? ONE_ARENA_BYTES : TWO_ARENA_BYTES)
int main(void) {
  static float x[ONE_INPUT0_ELEMENTS], y[4][ONE_OUTPUT0_ELEMENTS], u[TWO_INPUT0_ELEMENTS], v[4][TWO_OUTPUT0_ELEMENTS];
  void *shared = aligned_alloc(64, (MOST + 63) / 64 * 64);
  void *first = aligned_alloc(64, (ONE_ARENA_BYTES + 63) / 64 * 64), *second = aligned_alloc(64, (TWO_ARENA_BYTES + 63) / 64 * 64);
  int bad = 0;
  for (int i = 0; i < ONE_INPUT0_ELEMENTS; i++) x[i] = (float)(i % 17) / 16;
  for (int i = 0; i < TWO_INPUT0_ELEMENTS; i++) u[i] = (float)(i % 5) - 2;
  for (int turn = 0; turn < 3; turn++) {
    memset(shared, 0xff, MOST);
    bad |= one_run(shared, x, y[turn]) | two_run(shared, u, v[turn]);
  }
  bad |= one_run(first, x, y[3]) | two_run(second, u, v[3]);
  for (int turn = 0; turn < 3; turn++) bad |= memcmp(y[turn], y[3], sizeof *y) != 0 || memcmp(v[turn], v[3], sizeof *v) != 0;
  printf("%d %d\\n", bad, y[3][0] != y[3][1] && v[3][0] != v[3][1]);
  free(shared), free(first), free(second);
  return 0;
}
"""


class Work:
    def __init__(self, env, name):
        env.need_ingot()
        if not shutil.which("cc"):
            raise Skip("no C compiler")
        self.env = env
        self.dir = env.scratch("product", name)
        shutil.rmtree(self.dir)
        os.makedirs(self.dir)

    def path(self, name):
        return os.path.join(self.dir, name)

    def run(self, *cmd, code=0, text=None, env=None):
        got = run(list(cmd), 120, cwd=self.dir, env=env)
        if got.rc != code or (text and text not in got.text()):
            raise Fail(f"{' '.join(cmd)}: {explain(got)}, expected {code} {text or ''}: {tail(got.text(), 6)}")
        return got

    def build(self, out, *args, **how):
        return self.run(self.env.ingot, "build", MODEL, "-d", "batch=1", "-o", out, *args, **how)


def libraries(w):
    with open(w.path("main.c"), "w") as f:
        f.write(CALLER)
    for out, link in (("net.o", ["net.o"]), ("libnet.a", ["-L.", "-lnet"]), ("net.so", ["./net.so"])):
        w.build(out, "-O1", "--name", "net")
        if out == "libnet.a":
            shutil.move(w.path("libnet.h"), w.path("net.h"))
        w.run("cc", "-o", "main", "main.c", *link, "-lm")
        want(w.run("./main").out == b"0 0 1 10\n", f"{out}: the caller prints something else")
    w.build("libnet.a")  # the prefix comes from the file
    want(b"net_run" in w.run("nm", "libnet.a").out, "libnet.a does not define net_run")


def shared(w):
    """Several models in one program: no names clash, and one arena of the larger size suffices."""
    w.build("one.o", "-O1", "--name", "one")
    w.run(w.env.ingot, "build", os.path.join(ROOT, "test", "docs", "tour.onnx"), "-d", "batch=1", "-o", "two.o", "--name", "two")
    with open(w.path("main.c"), "w") as f:
        f.write(SHARED)
    w.run("cc", "-fsanitize=address,undefined", "-g", "-o", "main", "main.c", "one.o", "two.o", "-lm")
    want(w.run("./main").out == b"0 1\n", "the models disturb each other")


def program(w):
    w.build("net", "-O1", "--sanitize", "address,undefined")
    line = json.loads(w.run("./net", "--bench", "0.05").out)
    want(sorted(line) == ["min_ms", "n", "p50_ms", "p90_ms", "p99_ms", "rss_kb"] and line["n"] >= 5, f"--bench: {line}")
    want(line["min_ms"] <= line["p50_ms"] <= line["p90_ms"] <= line["p99_ms"], f"--bench: {line}")
    want(b"passed" in w.run("./net", "--selftest").out, "--selftest does not pass")
    want(b"f32[1,10]" in w.run("./net").out, "no summary of the output")
    told = w.run("./net", "--help").out
    want(b"inputs: image f32[1,1,8,8]\noutputs: probability f32[1,10]\n" in told, f"--help does not tell what the model takes: {told}")
    for words, why in ((("--input", "x.npz"), "--input: unknown option"), (("--seed",), "--seed: expected a value"), (("--steps", "x"), "--steps: expected a number")):
        w.run("./net", *words, code=2, text=why)
    w.run("./net", "--seed", "7", "--output", "a.npz")
    w.run(w.env.ingot, "run", MODEL, "-d", "batch=1", "--march", "native", "--seed", "7", "--output", "b.npz")
    want(npy.load_npz(w.path("a.npz")) == npy.load_npz(w.path("b.npz")), "the program and `ingot run` differ on made-up input")


def archives(w):
    """Inputs from archives, stored and deflated; damaged archives are refused."""
    w.build("net", "-O1", "--sanitize", "address,undefined")
    raw = npy.encode(npy.Array("f32", (1, 1, 8, 8), [(i % 17) / 16 for i in range(64)]))
    seen = set()
    for how in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        with zipfile.ZipFile(w.path("in.npz"), "w", how) as z:
            z.writestr("image.npy", raw)
        w.run("./net", "--inputs", "in.npz", "--output", "out.npz")
        seen.add(str(npy.load_npz(w.path("out.npz"))))
    w.run(w.env.ingot, "run", MODEL, "--march", "native", "--inputs", "in.npz", "--output", "b.npz")
    want(seen == {str(npy.load_npz(w.path("b.npz")))}, "the program and `ingot run` differ on given input")
    with open(w.path("in.npz"), "rb") as f:
        whole = f.read()
    for n in range(0, len(whole), 37):  # truncated, and with one byte changed
        for bad in (whole[:n], whole[:n] + bytes([whole[n] ^ 0x55]) + whole[n + 1:]):
            with open(w.path("bad.npz"), "wb") as f:
                f.write(bad)
            got = run(["./net", "--inputs", "bad.npz", "--output", "out.npz"], 60, cwd=w.dir)
            want(got.rc in (0, 2, 3, 4), f"damaged at byte {n}: {explain(got)}: {tail(got.text(), 4)}")
    w.run("./net", "--inputs", "absent.npz", code=5, text="absent.npz")
    for name, array in (("image", npy.Array("f32", (1, 1, 8, 7), [0.0] * 56)), ("image", npy.Array("f64", (1, 1, 8, 8), [0.0] * 64)),
                        ("other", npy.Array("f32", (1,), [0.0]))):
        with zipfile.ZipFile(w.path("in.npz"), "w") as z:
            z.writestr(name + ".npy", npy.encode(array))
        got = run(["./net", "--inputs", "in.npz"], 60, cwd=w.dir)
        want(got.rc in (2, 4) and name in got.text(), f"a wrong array '{name}' {array.kind}{array.shape}: {explain(got)}")
        if array.shape == (1, 1, 8, 7):
            want("input 'image': the array has shape 1x1x8x7, expected 1x1x8x8" == got.text().strip().split("net: ")[-1], f"the message is {got.text()}")


def one_reader(w):
    """A program refuses the archives that `ingot run` refuses, with the same exit code."""
    w.build("one")
    image = npy.encode(npy.Array("f32", (1, 1, 8, 8), [(i % 17) / 16 for i in range(64)]))

    def pack(how=zipfile.ZIP_STORED, names=("image.npy",)):
        f = io.BytesIO()
        with zipfile.ZipFile(f, "w", how) as z, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name in names:
                z.writestr(name, image)
        return bytearray(f.getvalue())

    def spoil(data, at, value, central=None):
        data[at] = value
        if central is not None:
            data[data.rindex(b"PK\1\2") + central] = value
        return data

    stored, packed = pack(), pack(zipfile.ZIP_DEFLATED)
    cases = {"whole": (stored, 0), "deflated": (packed, 0), "other members": (pack(names=("readme.txt", "image.npy")), 0),
             "other arrays": (pack(names=("other.npy", "image.npy")), 0),
             "checksum": (spoil(pack(), stored.rindex(b"PK\1\2") + 16, stored[stored.rindex(b"PK\1\2") + 16] ^ 1), 4),
             "byte": (spoil(pack(), len("image.npy") + 30 + 200, 77), 4),
             "packed byte": (spoil(pack(zipfile.ZIP_DEFLATED), len("image.npy") + 30 + 40, packed[len("image.npy") + 70] ^ 8), 4),
             "twice": (pack(names=("image.npy", "image.npy")), 4), "encrypted": (spoil(pack(), 6, 1, 8), 3),
             "method": (spoil(pack(), 8, 12, 10), 3), "cut": (stored[:-30], 4), "empty": (b"", 4), "text": (b"no archive", 4),
             "no such input": (pack(names=("imag.npy",)), 2), "name": (spoil(pack(), 31, 0x41), 4)}
    for what, (data, code) in cases.items():
        with open(w.path("in.npz"), "wb") as f:
            f.write(data)
        w.run(w.env.ingot, "run", MODEL, "--inputs", "in.npz", "-o", "a.npz", code=code)
        w.run(w.path("one"), "--inputs", "in.npz", "--output", "b.npz", code=code)
        if not code:
            a, b = (npy.load_npz(w.path(n))["probability"].data for n in ("a.npz", "b.npz"))
            want(all(abs(x - y) < 1e-6 for x, y in zip(a, b)), f"{what}: {a} and {b}")
    for names, text in ((("other.npy", "image.npy"), "other: warning: the model has no input of this name"), (("other.npy",), "other: the model has no such input")):
        with open(w.path("in.npz"), "wb") as f:
            f.write(pack(names=names))
        w.run(w.path("one"), "--inputs", "in.npz", code=0 if "warning" in text else 2, text=text)
    with open(w.path("alone.npy"), "wb") as f:
        f.write(image)
    for program in ((w.path("one"),), (w.env.ingot, "run", MODEL)):
        w.run(*program, "--inputs", "alone.npy", code=2, text="alone.npy: expected an .npz archive, as numpy.savez writes it")
    os.symlink("in.npz", w.path("same.npz"))
    with open(w.path("in.npz"), "wb") as f:
        f.write(stored)
    w.run(w.path("one"), "--inputs", "in.npz", "--output", "same.npz", code=2, text="would be replaced by the output")
    want(open(w.path("in.npz"), "rb").read() == stored, "the program has overwritten its inputs")


def extents(w):
    """Shapes with a common size: arrays that disagree are refused, whichever comes first, with the expected shape."""
    with open(w.path("net.ing"), "w") as f:
        f.write('graph sym n in 1..9 (%1 "a": f32[n], %2 "b": f32[n], %3 "c": f32[]) {\n  %4: f32[n] = add(%1, %2)\n'
                '  %5: f32[n] = mul(%4, %3)\n  return %5 "y"\n}\n')
    w.run(w.env.ingot, "build", "net.ing", "-o", "net", "-O1", "--sanitize", "address,undefined")
    for shapes, code, text in (([(3,), (3,), ()], 0, "f32[3]"), ([(9,), (2,), ()], 4, "input 'a': dimension 0 is 9, expected 2"),
                               ([(2,), (9,), ()], 4, "input 'a': dimension 0 is 2, expected 9"),
                               ([(10,), (9,), ()], 4, "input 'a': the array has shape 10, expected (up to 9)"),
                               ([(2,), (2,), (1,)], 4, "input 'c': the array has shape 1, expected () (a scalar)"),
                               ([(), (2,), ()], 4, "input 'a': the array has shape () (a scalar), expected (up to 9)")):
        with zipfile.ZipFile(w.path("in.npz"), "w") as z:
            for name, shape in zip("abc", shapes):
                z.writestr(name + ".npy", npy.encode(npy.Array("f32", shape, [1.0] * (shape[0] if shape else 1))))
        got = run(["./net", "--inputs", "in.npz"], 60, cwd=w.dir)
        want(got.rc == code and text in got.out.decode() + got.text(), f"{shapes}: {explain(got)}, expected {code} {text}: {got.text()}")


def reasons(w):
    """A run-time check of sizes that fails: every engine and the built program name the node and the reason."""
    n, dim = 40, lambda k: f"a_dimension_with_a_long_name_{k}"
    syms = " ".join(f"sym {dim(k)} in 1..4" for k in range(n))
    params = ", ".join(f'%x{k} "x{k}": f32[{dim(k)}]' for k in range(n))
    adds = [f'  %y{k}: f32[{dim(0)}] = add(%{"x0" if k == 1 else f"y{k - 1}"}, %x{k}) @("Add", "sum\\"{k}", {k})' for k in range(1, n)]
    with open(w.path("sums.ing"), "w") as f:
        f.write(f"graph {syms} ({params}) {{\n" + "\n".join(adds) + f'\n  return %y{n - 1} "y"\n}}\n')
    for wrong in (1, 7, 38, 39, None):
        with zipfile.ZipFile(w.path("in.npz"), "w") as z:
            for k in range(n):
                size = 3 if k == wrong else 2
                z.writestr(f"x{k}.npy", npy.encode(npy.Array("f32", (size,), [1.0] * size)))
        text = f"(Add): add: {dim(wrong)} is neither {dim(0)} nor 1" if wrong else None
        said = set()
        for engine in ("ref", "interp", "c"):
            got = w.run(w.env.ingot, "run", "sums.ing", "--inputs", "in.npz", "--engine", engine, code=4 if wrong else 0,
                        text=f"node {wrong} " if wrong else None)
            said |= {got.text().replace(f"ing:{wrong + 1}:", "ing:") if wrong else ""} if engine != "ref" else set()
        want(len(said) == 1 and (not wrong or text in said.pop()), f"interp and c say {said}, expected {text}")
        if wrong in (38, None):
            w.run(w.env.ingot, "build", "sums.ing", "-o", "sums", "-O0", "--sanitize", "address,undefined")
            w.run("./sums", "--inputs", "in.npz", code=4 if wrong else 0, text=text)
    w.run(w.env.ingot, "build", "sums.ing", "-o", "sums.o", "-O0")
    with open(w.path("why.c"), "w") as f:
        f.write('#include "sums.h"\n#include <stdio.h>\nint main(void) {\n'
                '  for (int i = -1; i < 50; i++) puts(sums_why(i));\n  return 0;\n}\n')
    w.run("cc", "-o", "why", "why.c", "sums.o")
    lines = w.run("./why").out.decode().splitlines()
    want(lines[1:3] == ["done", "the arena is NULL or not aligned"] and "self-test" in lines[4], f"the first statuses are {lines[:6]}")
    found = [k for k, x in enumerate(lines) if " is neither " in x]
    want(found == list(range(7, 7 + n - 1)), f"reasons stand at {found}")
    want(all(f"_{k} is neither" in lines[6 + k] for k in range(1, n)), "reasons are not in their order")
    want({lines[0], *lines[6 + n:]} == {"not a status of this model"}, f"beyond the last: {lines[0]}, {lines[6 + n:]}")


def weight_files(w):
    """--weights file: the program finds the written file by its name; the macro selects another folder."""
    os.makedirs(w.path("gen"))
    w.run(w.env.ingot, "compile", MODEL, "-d", "batch=1", "--weights", "file", "-o", "gen/net.c", "--name", "digits")
    want(sorted(os.listdir(w.path("gen"))) == ["net.bin", "net.c", "net.h"], f"written: {os.listdir(w.path('gen'))}")
    with open(w.path("main.c"), "w") as f:
        f.write('#include "net.h"\n_Alignas(64) static unsigned char m[DIGITS_SELFTEST_BYTES];\n'
                'int main(void) { return digits_selftest(m); }\n')
    path = "-DDIGITS_WEIGHTS_FILE=" + json.dumps("gen/net.bin")
    w.run("cc", "-std=c11", "-ffp-contract=off", path, "-Igen", "main.c", "gen/net.c", "-o", "main")
    w.run("./main")
    want(run(["cc", "-std=c99", "-c", "net.c"], 60, cwd=w.path("gen")).rc == 0, "not found from its own folder")
    odd = w.path('say "x\\y"?')  # a temporary folder whose name is special in C and in assembler
    os.makedirs(odd)
    w.build("net.o", "--weights", "file", "--name", "digits", env={"TMPDIR": odd})
    w.run("cc", "-I.", "main.c", "net.o", "-o", "main")
    w.run("./main")
    want(run(["cc", "-std=c99", "-c", "gen/net.c"], 60, cwd=w.dir).rc != 0, "found from anywhere")
    for how in ("file", "pointer"):
        w.run(w.env.ingot, "compile", MODEL, "-d", "batch=1", "--weights", how, code=2, text="--output")
    for verb, name in (("compile", "p.c"), ("build", "libp.so")):
        w.run(w.env.ingot, verb, MODEL, "-d", "batch=1", "--weights", "pointer", "--march", "scalar", "-o", name, "--name", "p")
    with open(w.path("p.bin"), "rb") as a, open(w.path("libp.bin"), "rb") as b:
        want(a.read() == b.read(), "build writes other weights than compile")


def together(w):
    """If the C file cannot be written, its header and weights are not replaced either; the header lists the compilers for its
    vectors."""
    os.makedirs(w.path("n.c"))
    for end in (".h", ".bin"):
        with open(w.path("n" + end), "w") as f:
            f.write("old")
    w.run(w.env.ingot, "compile", MODEL, "-d", "batch=1", "--weights", "pointer", "-o", "n.c", code=5, text="is a directory")
    for end in (".h", ".bin"):
        with open(w.path("n" + end)) as f:
            want(f.read() == "old", f"n{end} was replaced")
    want(sorted(os.listdir(w.dir)) == ["n.bin", "n.c", "n.h"], f"left behind: {os.listdir(w.dir)}")
    for march, flags in (("avx2", "x86-64 need no flags"), ("neon", "that machine need no flags"), ("multi", None)):
        text = w.run(w.env.ingot, "compile", MODEL, "-d", "batch=1", "--march", march).out.decode()
        head = text[:text.index("*/")]
        want(flags in head if flags else "Vectors" not in head, f"{march}: {head}")
    text = w.run(w.env.ingot, "compile", MODEL, "--max-shapes", "image:8x1x8x8").out.decode()
    want("options: image:0=0-8\n" in text, "extents that are fixed are listed among the bounds")


def facts(w):
    """--library of run and verify must be that of the model: interface, weights, sizes, arena."""
    texts = {"good": ("n", "f32", 9, 2, "x"), "named": ("n", "f32", 9, 2, "z"), "typed": ("n", "f64", 9, 2, "x"), "sized": ("n", "f32", 7, 2, "x"),
             "weighed": ("n", "f32", 9, 3, "x"), "shaped": ("2*n", "f32", 9, 2, "x")}
    for name, (dim, kind, most, weight, x) in texts.items():
        with open(w.path(name + ".ing"), "w") as f:
            f.write(f'graph sym n in 1..{most} (%1 "{x}": {kind}[{dim}]) {{\n  %2: {kind}[] = const {{{weight}}}\n'
                    f'  %3: {kind}[{dim}] = mul(%1, %2)\n  %4: {kind}[{dim}] = exp(%3)\n  return %4 "y"\n}}\n')
    w.run(w.env.ingot, "build", "good.ing", "-o", "net.so", "--march", "scalar", "--caller")
    given = ("--engine", "c", "--library", "net.so", "--name", "net", "-i", "x=@x.npy")
    with open(w.path("x.npy"), "wb") as f:
        f.write(npy.encode(npy.Array("f32", (4,), [1.0] * 4)))
    w.run(w.env.ingot, "run", "good.ing", *given)
    w.run(w.env.ingot, "verify", "good.ing", *given)
    for name, text in (("named", "input"), ("typed", "f64"), ("sized", "7"), ("weighed", "model"), ("shaped", "2*n")):
        args = [a.replace("x=", texts[name][4] + "=") for a in given]
        if name == "typed":
            args[-1] = "x=@d.npy"
            with open(w.path("d.npy"), "wb") as f:
                f.write(npy.encode(npy.Array("f64", (4,), [1.0] * 4)))
        got = w.run(w.env.ingot, "run", name + ".ing", *args, code=4, text="net.so was made from another model or with other options")
        want(text in got.text(), f"{name}: {got.text()}")
    with open(w.path("net.so"), "rb") as f:
        whole = f.read()
    for n in (0, 3, 63, 64, 500, 1000, len(whole) // 4, len(whole) // 2, len(whole) - 1):  # the dynamic loader would fail on the missing symbol
        with open(w.path("part.so"), "wb") as f:
            f.write(whole[:n])
        w.run(w.env.ingot, "run", "good.ing", *[a.replace("net.so", "part.so") for a in given], code=4, text="part.so is truncated")
    with open(w.path("part.so"), "wb") as f:
        f.write(b"this is no library at all")
    w.run(w.env.ingot, "run", "good.ing", *[a.replace("net.so", "part.so") for a in given], code=4, text="part.so")
    w.run(w.env.ingot, "run", "good.ing", *[a.replace("net.so", "absent.so") for a in given], code=5, text="absent.so")
    w.run(w.env.ingot, "build", "good.ing", "-o", "bare.so", "--name", "net")
    w.run(w.env.ingot, "run", "good.ing", *[a.replace("net.so", "bare.so") for a in given], code=4, text="--caller")
    w.run(w.env.ingot, "build", MODEL, "-o", "digits.so", "--caller", "--march", "sse2")
    w.run(w.env.ingot, "run", MODEL, "--engine", "c", "--library", "digits.so", "--name", "digits", code=4, text="was built for sse2")


def flags(w):
    """--cc, -O, --march and --sanitize reach the compiler, one word each; the result runs."""
    with open(w.path("mycc"), "w") as f:
        f.write('#!/bin/sh\nfor word; do echo "$word"; done >>words\nexec cc "$@"\n')
    os.chmod(w.path("mycc"), 0o755)
    cases = {("-O3", "--march", "native"): {"-O3", *cpu.native_flags()}, ("-Os",): {"-Os"}, ("-O0", "--sanitize", "undefined"): {"-O0", "-fsanitize=undefined"},
             (): {"-O2"}}
    for args, words in cases.items():
        w.build("net", "--cc", w.path("mycc"), *args)
        with open(w.path("words")) as f:
            seen = set(f.read().split("\n"))
        want(words <= seen, f"{args}: the compiler was given {sorted(seen)}")
        want({x for x in seen if x.startswith(("-O", "-fsanitize"))} <= words, f"{args}: more than that: {sorted(seen)}")
        want(b"passed" in w.run("./net", "--selftest").out, f"{args}: --selftest does not pass")
        os.unlink(w.path("words"))
    if shutil.which("clang"):
        w.build("net", "--cc", "clang", "-O2")
        want(b"passed" in w.run("./net", "--selftest").out, "clang: --selftest does not pass")


def machines(w):
    """CPUs that only the compiler knows: the compiler reports their vectors; plain loops are not chosen silently."""
    def made_for(name, cc, march, silent=True):
        got = w.build("net.o", "--cc", cc, *(["--march", name] if name else []), "--no-selftest", "-O0")
        with open(w.path("net.h")) as f:
            options = f.read().split("options: ")[1].split("\n")[0]
        want((f"march={march}" in options) if march else "march" not in options, f"{cc} {name}: options are {options}")
        want(silent or "using scalar code" in got.text(), f"{cc} {name}: says {got.text()}")
        want(not silent or "using scalar code" not in got.text(), f"{cc} {name}: warns {got.text()}")
    for cc in ("gcc", "clang"):
        if shutil.which(cc) and os.uname().machine == "x86_64":
            for name, march in (("x86-64-v3", "avx2"), ("skylake-avx512", "avx512"), ("nehalem", "sse2")):
                made_for(name, cc, march)
    if shutil.which("aarch64-linux-gnu-gcc"):
        made_for("cortex-a72", "aarch64-linux-gnu-gcc", "neon")
        made_for("armv8-a", "aarch64-linux-gnu-gcc", "neon")
        made_for(None, "aarch64-linux-gnu-gcc", "neon")
    if shutil.which("arm-none-eabi-gcc"):
        made_for("arm7tdmi", "arm-none-eabi-gcc", None, silent=False)
        for name, target in (("cortex-m3", "cortex-m"), ("cortex-m4", "cortex-m4"), ("cortex-m33", "cortex-m4")):
            made_for(name, "arm-none-eabi-gcc", None)
            with open(w.path("net.h")) as f:
                want(f'NET_TARGET "{target}"' in f.read(), f"{name}: not made for {target}")
        made_for(None, "arm-none-eabi-gcc", None)
    if os.uname().machine == "x86_64":
        w.build("x.o", "--march", "no-such-cpu", code=2, text="--march no-such-cpu: neither ingot nor the C compiler")
    w.build("x.o", "--march", "znver3 -DX", code=2, text="expected the name of a CPU")


def refusals(w):
    w.build("x.o", "--cc", "no-such-compiler", code=5, text="no-such-compiler")
    w.build("x.o", code=5, text="no-such-compiler", env={"CC": "no-such-compiler"})
    w.build("x.o", "--march", "no-such-cpu", code=2, text="--march no-such-cpu: neither ingot nor the C compiler")
    w.build("x.o", "--march", "multi,avx2", code=2, text="multi means sse2,avx2,avx512")
    w.build("x.o", "--march", "avx2,", code=2, text="unknown target ''")
    w.build("x.o", "--cc", "false", code=5, text="exit status 1")
    with open(w.path("killed"), "w") as f:
        f.write("#!/bin/sh\nkill -KILL $$\n")
    os.chmod(w.path("killed"), 0o755)
    w.build("x.o", "--cc", w.path("killed"), code=5, text="was ended by signal 9 (Killed)")
    os.remove(w.path("killed"))
    w.build("x.o", "--cc", "false", "--march", "no-such-cpu", code=5, text="'false' failed (exit status 1)")
    w.build("x.o", "-Ofast", code=2, text="-Ofast")
    w.build("x.o", "--threads", "65", code=2, text="--threads 65: expected a whole number from 1 to 64")
    w.build("x.o", "--threads", "2", "--threads-api", "fibres", code=2, text="fibres")
    w.build("x.o", "--name", "a-b", code=2, text="a-b")
    w.build("x", "--weights", "pointer", code=2, text="pointer")
    w.build("/dev/null/x.o", code=5, text="is not a directory")
    w.build("x.c", code=2, text="is a source file")
    w.run(w.env.ingot, "build", MODEL, code=2, text="--output")
    w.run(w.env.ingot, "run", MODEL, "--library", "x.so", code=2, text="--engine c")
    w.run(w.env.ingot, "verify", MODEL, "--library", "x.so", "--engine", "interp", code=2, text="--engine c")
    got = w.run(w.env.ingot, "bench", MODEL, "--max-shapes", "image:8x1x8x8", code=2, text="-d 'image:0=N'")
    want(got.text().count("-d 'image:0=N'") == 1, f"said more than once: {got.text()}")
    w.run(w.env.ingot, "verify", __file__, code=3, text="is a Python program")
    w.build("x; touch y.o")  # names are words, not commands
    want(sorted(os.listdir(w.dir)) == ["x; touch y.h", "x; touch y.o"], f"left behind: {os.listdir(w.dir)}")


def plain(w):
    """`compile` is the default verb; C goes to stdout, or to a file with its header."""
    first = w.run(w.env.ingot, MODEL, "-d", "batch:1", "-f", "net").out
    want(b"int net_run(void *arena" in first, "no entry in the C text")
    want(first == w.run(w.env.ingot, "compile", MODEL, "--input-dim", "batch=1", "--name", "net").out, "compile differs")
    w.run(w.env.ingot, MODEL, "-d", "batch=1", "-o", "net.c")
    with open(w.path("net.c"), "rb") as f:
        want(f.read() == first, "the file differs from stdout")
    want(os.path.exists(w.path("net.h")), "no header beside the file")
    for name, prefix in (("3d", "m3d"), (".hidden", "model"), ("a-b.v2", "a_b")):
        w.run(w.env.ingot, MODEL, "-d", "batch=1", "-o", name + ".c")
        with open(w.path(name + ".h")) as f:
            want(f"int {prefix}_run(" in f.read(), f"{name}.c: the prefix is not {prefix}")
    want(b"net_selftest" not in w.run(w.env.ingot, MODEL, "--no-selftest", "-f", "net").out, "--no-selftest has no effect")


CASES = (libraries, shared, program, archives, one_reader, extents, facts, flags, machines, reasons, weight_files, together, refusals, plain)


def tests(env):
    return [Test(f"product/{fn.__name__}", lambda fn=fn: fn(Work(env, fn.__name__)), cost=5) for fn in CASES]
