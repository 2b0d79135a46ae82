"""The build: both compilers without warnings, a usable installation, and what the object files of the library promise.

They have no writable data, call nothing that prints or ends the program, and export only names of the library.
"""
import os
import re
import shutil
import tarfile
import zipfile
from lib import npy, pick
from lib.core import ROOT, Fail, Skip, Test, run, tail

CHECK = "* !build/clang"

NEVER = {"exit", "_exit", "abort", "printf", "fprintf", "puts", "putchar", "perror", "system", "popen", "__assert_fail", "gets",
         "stdout", "stderr", "rand", "strtok", "setlocale", "signal"}
WRITABLE = (".data", ".bss", ".tdata", ".tbss")
USER = r"""
#include <ingot.h>
#include <stdio.h>
int main(void) {
  Ingot *m = ingot_new(NULL);
  IngotStatus s = ingot_open_bytes(m, "nothing", 7, "nothing.onnx");
  printf("%d %u\n", s, (unsigned)ingot_message_count(m));
  ingot_free(m);
  return s == INGOT_BAD_INPUT ? 0 : 1;
}
"""

# x + k x x x, from which a pass makes new constants and products
CUBE = """graph
(%x: f32[4]) {
  %k: f32[] = const {0.044715}
  %s: f32[4] = mul(%x, %x)
  %c: f32[4] = mul(%s, %x)
  %m: f32[4] = mul(%c, %k)
  %y: f32[4] = add(%x, %m)
  return %y
}
"""

# A program with its own inflate, which also makes the library inflate an archive.
BOTH = r"""
#include <ingot.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>
int main(int argc, char **argv) {
  static unsigned char packed[200], text[100], back[100];
  uLongf n = sizeof packed, m = sizeof back;
  for (int i = 0; i < 100; i++) text[i] = (unsigned char)(i % 7);
  z_stream z = {0};
  if (argc < 3 || compress(packed, &n, text, sizeof text) || inflateInit(&z)) return 1;
  z.next_in = packed, z.avail_in = (uInt)n, z.next_out = back, z.avail_out = (uInt)m;
  if (inflate(&z, Z_FINISH) != Z_STREAM_END || inflateEnd(&z) || memcmp(text, back, sizeof text)) return 2;
  Ingot *g = ingot_new(NULL);
  if (ingot_open(g, argv[1]) || ingot_input_file(g, argv[2]) || ingot_run(g, "interp", 0)) return 3;
  printf("%u\n", (unsigned)ingot_output_count(g));
  ingot_free(g);
  return 0;
}
"""


def ok(got, what):
    if got.rc or got.timed_out:
        raise Fail(f"{what}: {tail((got.out + got.err).decode('utf-8', 'replace'))}")
    return got.out.decode()


def clang(env):
    if not shutil.which("clang"):
        raise Skip("clang is not installed")
    env.make("asan")  # by clang, with the warnings of this repository
    both = env.ingot, os.path.join(ROOT, "build-asan", "ingot")
    mine, theirs = (ok(run([ingot, "opt", "--stop=canon", "-"], 20, stdin=CUBE.encode()), "opt") for ingot in both)
    if mine != theirs:  # the order of creation is fixed, not chosen by the compiler
        raise Fail(f"built by clang, ingot opt prints something else:\n{theirs}")
    models = [os.path.join(ROOT, "models", "digits.onnx"), *(c["model"] for c in pick.per_operator(env))]
    for model in models:  # as does the import
        mine, theirs = (run([ingot, "opt", "--stop=none", "--constants=all", model], 60) for ingot in both)
        if (mine.rc, mine.out) != (theirs.rc, theirs.out):
            raise Fail(f"{model}: built by clang, ingot makes another graph of it")


def library(env):
    path = os.path.join(env.build, "objects.a")
    if not os.path.exists(path):
        raise Skip("build/objects.a is not built")
    return path


def data(env):
    """`size -A` lists the sections of every member; constant tables are in .rodata or .data.rel.ro."""
    member, wrong = "", []
    for line in ok(run(["size", "-A", library(env)], 60), "size").splitlines():
        words = line.split()
        if "(ex" in line:
            member = words[0]
        elif len(words) == 3 and words[1].isdigit() and int(words[1]):
            if words[0] in WRITABLE or words[0].startswith((".data.", ".bss.")) and ".rel.ro" not in words[0]:
                wrong.append(f"{member} {words[0]} {words[1]} bytes")
    if wrong:
        raise Fail("writable data in the library: " + "; ".join(wrong))


def calls(env):
    text = ok(run(["nm", "-u", library(env)], 60), "nm")
    found = {w.split("@")[0] for line in text.splitlines() for w in line.split()[1:2]} & NEVER
    if found:
        raise Fail("the library uses " + " ".join(sorted(found)))


def installed(env):
    """The folder of an installation, created once."""
    def make():
        env.need_ingot()
        where = env.scratch("install")
        shutil.rmtree(where)
        ok(run(["make", "-C", ROOT, "install", "PREFIX=/opt/ingot", f"DESTDIR={where}"], 300), "make install")
        return os.path.join(where, "opt", "ingot")
    return env.once("installed", make)


def install(env):
    top = installed(env)
    where = env.scratch("install-user")
    for name in ("bin/ingot", "lib/libingot.a", "lib/libingot.so", "include/ingot.h", "lib/pkgconfig/ingot.pc", "share/man/man1/ingot.1",
                 "share/bash-completion/completions/ingot", "share/zsh/site-functions/_ingot", "share/fish/vendor_completions.d/ingot.fish"):
        if not os.path.getsize(os.path.join(top, name)):
            raise Fail(f"{name} is empty")
    with open(os.path.join(top, "lib", "pkgconfig", "ingot.pc")) as f:
        text = f.read()
    version = ok(run([os.path.join(top, "bin", "ingot"), "--version"], 20), "ingot --version")
    stated = next(x.split()[1] for x in text.splitlines() if x.startswith("Version:"))
    if "prefix=/opt/ingot" not in text or stated not in version:
        raise Fail(f"ingot.pc does not fit: {text}")
    source = os.path.join(where, "user.c")
    with open(source, "w") as f:
        f.write(USER)
    flags = [f"-I{top}/include", source, f"-L{top}/lib", "-lingot", "-lm", "-o", os.path.join(where, "user")]
    ok(run(["cc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", *flags], 60), "a program that uses the library")
    ok(run(["env", f"LD_LIBRARY_PATH={top}/lib", os.path.join(where, "user")], 20), "running it")
    asked = ok(run(["env", f"LD_LIBRARY_PATH={top}/lib", "ldd", os.path.join(where, "user")], 20), "ldd") if shutil.which("ldd") else "libingot.so.0"
    if "libingot.so.0" not in asked:
        raise Fail(f"a program asks for the library by a name without a version: {asked}")
    cxx = shutil.which("g++")
    if cxx:
        ok(run([cxx, "-x", "c++", "-fsyntax-only", "-Wall", "-Werror", os.path.join(top, "include", "ingot.h")], 60), "C++")


def dist(env):
    """The source archive: the same bytes twice, and again from its own files; no build products."""
    if not shutil.which("tar"):
        raise Skip("tar is not installed")
    name, where = f"ingot-{version()}", env.scratch("dist")
    shutil.rmtree(where)
    os.makedirs(where)

    def make(top, out):
        ok(run(["make", "-C", top, "dist", f"BUILD={out}"], 120), f"make dist in {top}")
        with open(os.path.join(out, "dist", name + ".tar.gz"), "rb") as f:
            return f.read()
    first = make(ROOT, os.path.join(where, "a"))
    with tarfile.open(os.path.join(where, "a", "dist", name + ".tar.gz")) as t:
        t.extractall(where, filter="data") if hasattr(tarfile, "data_filter") else t.extractall(where)
        inside = {n.split("/", 1)[1] for n in t.getnames()}
    for out, top in (("b", ROOT), ("build", os.path.join(where, name))):
        if make(top, os.path.join(where, name if out == "build" else "", out)) != first:
            raise Fail(f"make dist in {top} gives other bytes")
    lacks = {"Makefile", "README.md", "LICENSE", "src/ingot.h", "test/run", "docs/ingot.1", "models/digits.onnx", ".clang-format", "tools/debian/rules"} - inside
    if lacks or any(n.startswith("build") or "__pycache__" in n for n in inside):
        raise Fail(f"the archive lacks {sorted(lacks)}, or has files that were built")


def version():
    with open(os.path.join(ROOT, "src", "ingot.h")) as f:
        return re.search(r'#define INGOT_VERSION\s+"([^"]+)"', f.read())[1]


def need_objcopy():
    if not shutil.which("objcopy"):
        raise Skip("objcopy is not installed: the static library shows all names")


def defined(path, *how):
    text = ok(run(["nm", "--defined-only", *how, path], 60), f"nm {path}")
    return {line.split()[-1] for line in text.splitlines() if len(line.split()) == 3}


def names(env):
    """Only names of ingot.h are visible, so a program may use all others, with the static and with the shared library."""
    top, where = installed(env), env.scratch("names")
    inner = sorted(n for n in defined(os.path.join(env.build, "objects.a"), "-g") if not n.startswith("ingot_"))
    for path, how in (("libingot.a", ["-g"]), ("libingot.so", ["-D"])):
        shown = defined(os.path.join(top, "lib", path), *how)
        wrong = sorted(n for n in shown if not n.startswith("ingot_"))
        if wrong or "ingot_new" not in shown:
            raise Fail(f"{path} shows {len(wrong)} names that are not of ingot.h: {' '.join(wrong[:8])}")
    if len(inner) < 500:
        raise Fail(f"the objects have {len(inner)} names")
    with open(os.path.join(where, "own.c"), "w") as f:
        f.write("".join(f"void {n}(void) {{ __builtin_trap(); }}\n" for n in inner))
    with open(os.path.join(where, "user.c"), "w") as f:
        f.write(USER)
    for library in ([f"{top}/lib/libingot.a"], [f"-L{top}/lib", "-lingot"]):
        ok(run(["cc", "-w", "-fno-builtin", f"-I{top}/include", "user.c", "own.c", *library, "-lm", "-o", "user"], 60, cwd=where), "linking names of its own")
        ok(run(["env", f"LD_LIBRARY_PATH={top}/lib", os.path.join(where, "user")], 20), f"a program with names of its own, {library[0]}")


def zlib(env):
    if not os.path.exists("/usr/include/zlib.h"):
        raise Skip("zlib.h is not installed")
    top, where = installed(env), env.scratch("zlib")
    with open(os.path.join(where, "both.c"), "w") as f:
        f.write(BOTH)
    with zipfile.ZipFile(os.path.join(where, "in.npz"), "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("image.npy", npy.encode(npy.Array("f32", (1, 1, 8, 8), [0.5] * 64)))
    for order in ([f"{top}/lib/libingot.a", "-lz"], ["-lz", f"{top}/lib/libingot.a"], ["-lz", f"-L{top}/lib", "-lingot"]):
        ok(run(["cc", "-Wall", "-Werror", f"-I{top}/include", "both.c", *order, "-lm", "-o", "both"], 60, cwd=where), "linking with zlib")
        ok(run(["env", f"LD_LIBRARY_PATH={top}/lib", os.path.join(where, "both"), os.path.join(ROOT, "models", "digits.onnx"),
                os.path.join(where, "in.npz")], 20), f"a program with zlib, {order}")


def tests(env):
    return [Test("build/clang", lambda: clang(env), cost=40), Test("build/writable-data", lambda: data(env)),
            Test("build/forbidden-calls", lambda: calls(env)), Test("build/install", lambda: install(env), cost=5),
            Test("build/dist", lambda: dist(env), cost=4), Test("build/names", lambda: names(env), cost=3), Test("build/zlib", lambda: zlib(env), cost=3)]
