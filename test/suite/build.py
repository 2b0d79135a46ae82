"""The build itself: both compilers without warnings, an installation somebody can use, and what the library promises about its
object files (no writable data, no calls that print or end the program)."""
import os
import shutil
from lib.core import ROOT, Fail, Skip, Test, run, tail

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


def ok(got, what):
    if got.rc or got.timed_out:
        raise Fail(f"{what}: {tail((got.out + got.err).decode('utf-8', 'replace'))}")
    return got.out.decode()


def clang(env):
    if not shutil.which("clang"):
        raise Skip("clang is not installed")
    env.make("clang")


def library(env):
    path = os.path.join(env.build, "libingot.a")
    if not os.path.exists(path):
        raise Skip("build/libingot.a is not built")
    return path


def data(env):
    """`size -A` names the sections of every member; constant tables are in .rodata or .data.rel.ro."""
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


def install(env):
    env.need_ingot()
    where = env.scratch("install")
    shutil.rmtree(where)
    ok(run(["make", "-C", ROOT, "install", "PREFIX=/opt/ingot", f"DESTDIR={where}"], 300), "make install")
    top = os.path.join(where, "opt", "ingot")
    for name in ("bin/ingot", "lib/libingot.a", "lib/libingot.so", "include/ingot.h", "lib/pkgconfig/ingot.pc", "share/man/man1/ingot.1"):
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
    ok(run(["gcc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", *flags], 60), "a program that uses the library")
    ok(run(["env", f"LD_LIBRARY_PATH={top}/lib", os.path.join(where, "user")], 20), "running it")
    cxx = shutil.which("g++")
    if cxx:
        ok(run([cxx, "-x", "c++", "-fsyntax-only", "-Wall", "-Werror", os.path.join(top, "include", "ingot.h")], 60), "C++")


def tests(env):
    return [Test("build/clang", lambda: clang(env), cost=40), Test("build/writable-data", lambda: data(env)),
            Test("build/forbidden-calls", lambda: calls(env)), Test("build/install", lambda: install(env), cost=5)]
