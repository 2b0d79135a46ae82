"""Promises of generated C, for vectors: each model of a larger corpus for one of the targets in turn, and networks with every
kernel family for all targets.

Besides the checks of promises.py, arrays that are aligned only for their elements must give the same bits.
The stack is measured: it is filled with a pattern before a run, so that the bound in the header is checked for compilers that do
not report frames.
"""
import os
import re
import shutil
from lib import cfile, cpu
from lib.core import SANITIZER, Fail, Skip, Test, explain, need, run, tail, want
from suite import promises

TARGETS = ("avx2", "avx512", "sse2", *cpu.OTHER)
NETS = ("mobile21", "dense32", "grouped", "bytes19", "attention")
# Without optimization every value has a place in the frame: there the stack is measured.
# bare: no flags; the file selects the target itself
BUILDS = {  # name: compiler, flags, and the fraction of the models that are tested (one of N)
    "gcc-O0": ("gcc", ["-O0"], 2), "gcc-O0-bare": ("gcc", ["-O0"], 6), "clang-O0-bare": ("clang", ["-O0"], 4), "gcc-O3": ("gcc", ["-O3", "-Wconversion", "-Wno-sign-conversion", "-Wshadow", "-Wcast-qual"], 4),
    "clang-O0": ("clang", ["-O0"], 5), "clang-O2": ("clang", ["-O2"], 4)}
FEWEST = 60
DEEP = """#define AREA (1 << 18)
static void paint(void) {
  volatile unsigned char area[AREA];
  for (int i = 0; i < AREA; i++) area[i] = 0xa5;
}
static int depth(void) {
  volatile unsigned char area[AREA];
  int i = 0;
  while (i < AREA && area[i] == 0xa5) i++;
  return AREA - i;
}
"""


def choose(env):
    """(origin, arguments, target)"""
    found = [(origin, args, TARGETS[i % len(TARGETS)]) for i, (origin, args) in enumerate(promises.choose(env, 1000, 100))]
    if env.python:
        folder = os.path.join(env.build, "targets")
        env.generated(folder, ["make/mktargets.py", "requirements.txt"], lambda: env.script("mktargets.py", folder))
        found += [(net, [os.path.join(folder, net + ".onnx"), "--selftest"], t) for net in NETS for t in TARGETS]
    return found


def corpus(env):
    """The files with vectors."""
    def make():
        env.need_ingot()
        folder = env.scratch("promises", "vectors")
        shutil.rmtree(folder)
        os.makedirs(folder)
        out = []
        for i, (origin, args, target) in enumerate(choose(env)):
            m = promises.Model(f"v{i}", f"{origin}, {target}", [*args, "--march", target])
            m.target = target
            texts = promises.emit(env, m.args, m.name, folder)
            if texts and "#if IG_VECTORS" in texts[0]:
                m.source, m.header = texts
                out.append(m)
        if len(out) < FEWEST and env.data:
            raise Fail(f"{len(out)} models on vectors, expected at least {FEWEST}")
        return folder, out
    return env.once("promises corpus of vectors", make)


def here(models):
    """Those that this machine can run."""
    can = [t for t in TARGETS if t not in cpu.OTHER and cpu.can_run(t)]
    if not can:
        raise Skip("this machine has none of the vectors")
    return [m for m in promises.light(models) if m.target in can]


# ---- callers ----

def driver(folder, models, shift, deep):
    """main.c: a line for every model: name, status, hash of the outputs, bytes of stack."""
    lines = ["#include <stdint.h>", "#include <stdio.h>", "#include <stdlib.h>", "extern void *aligned_alloc(size_t align, size_t n);",
             cfile.LOOK, DEEP if deep else ""]
    for m in models:
        lines += [f'#include "{m.name}.h"', cfile.caller(
            m.name, m.source, shift, "paint();" if deep else "", "int used = depth();" if deep else "int used = 0;",
            f'printf("{m.name} %d %u %d\\n", status, sum, used);')]
    lines += ["int main(void) {", *[f"  check_{m.name}();" for m in models], "  return 0;", "}"]
    path = os.path.join(folder, "calls.c")
    with open(path, "w") as f:
        f.write("\n".join(lines))
    return path


def call_all(folder, models, include, shift, deep=False, compiler="gcc", flags=(), env=None):
    """{name: (status, hash, stack)}"""
    program = os.path.join(folder, f"calls{shift}")
    cfile.cc([compiler, "-O0", "-w", *flags, "-Wl,-z,now", "-I", include, "-o", program, driver(folder, models, shift, deep),
              *[os.path.join(folder, m.name + ".o") for m in models], "-lm"], "linking the callers")
    got = run([program], 240, env=env)
    names = {m.name: m for m in models}
    if got.rc or got.timed_out:
        said = re.findall(r"^(v\d+) ", got.out.decode(), re.M)
        rest = [m for m in models if m.name not in said]
        raise Fail(f"{rest[0] if rest else 'the end'}, arrays shifted by {shift}: {explain(got)}: {got.text()[-1200:]}")
    rows = {w[0]: tuple(map(int, w[1:])) for w in (line.split() for line in got.out.decode().splitlines())}
    bad = [f"{names[k]}: status {s}" for k, (s, _, _) in rows.items() if s and (s < 6 or not promises.may_refuse(names[k]))]
    if bad or len(rows) != len(models):
        raise Fail("; ".join(bad[:5]) or "calls are missing")
    return rows


def check_calls(folder, models, include, how=None, other=False, **kw):
    """The same bits for any alignment of the caller's arrays; the stack within its bound."""
    deep = not kw
    plain, moved = (call_all(folder, models, include, shift, deep, env=how, **kw) for shift in (0, 1))
    bad = [f"{m}: other bits with arrays that are not aligned" for m in models if plain[m.name][1] != moved[m.name][1]]
    for m in models if deep else ():
        used, bound = max(plain[m.name][2], moved[m.name][2]), cfile.macro(m.header, m.name.upper() + "_STACK_BYTES", other)
        if used > bound:
            bad.append(f"{m}: {used} bytes of stack were used, the header says {bound}")
    if bad:
        raise Fail(f"{len(bad)} of {len(models)} models: " + "\n  ".join(bad[:5]))
    return plain


# ---- tests ----

def one_build(env, name):
    compiler, flags, every = BUILDS[name]
    need(compiler)
    source, models = corpus(env)
    models = env.share(here(models), every, name)
    want(len(models) >= len(here(corpus(env)[1])) // every > 0, f"only {len(models)} models")
    bare = name.endswith("-bare")
    folder = env.scratch("promises", "vectors-" + name)

    def check(m):
        out = promises.compile_one(m, compiler, [*flags, *([] if bare else cpu.flags(m.target))], folder, source)
        promises.check_object(m, compiler, folder, out, extra=("__cpu_model", "_GLOBAL_OFFSET_TABLE_") if bare else ())
    promises.each(models, check)
    promises.link_and_run([compiler], folder, models, source)
    check_calls(folder, models, source, other=name == "clang-O0-bare")


def emulated(env, target):
    """The same in an emulator; gcc reports the frames."""
    compiler, emulator = (need(x) for x in cpu.OTHER[target])
    source, models = corpus(env)
    models = [m for m in promises.light(models) if m.target == target]
    want(models, f"no models for {target}")
    for level in ("-O0", "-O2"):
        folder = env.scratch("promises", f"vectors-{target}{level}")

        def check(m):
            out = promises.compile_one(m, compiler, [level, *cpu.flags(target)], folder, source)
            promises.check_object(m, compiler, folder, out, compiler[:-3] + "size", ("__aeabi_",) if target.startswith("armv7") else ())
        promises.each(models, check)
    program = os.path.join(folder, "main")
    cfile.cc([compiler, "-static", "-I", source, "-o", program, promises.driver(folder, models, False),
              *[os.path.join(folder, m.name + ".o") for m in models], "-lm"], "linking")
    got = run([emulator, program], 240)
    if got.rc or got.timed_out:
        raise Fail(f"{explain(got)}: {tail(got.out.decode())}")


def sanitized(env, name, compiler, sanitizers, how, every):
    need(compiler)
    source, models = corpus(env)
    models = here(models)[::every]
    folder = env.scratch("promises", "vectors-" + name)
    flags = ["-O1", "-g1", f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all"]
    promises.each(models, lambda m: promises.compile_one(m, compiler, [*flags, *cpu.flags(m.target)], folder, source))
    promises.link_and_run([compiler, *flags], folder, models, source, env=how)
    check_calls(folder, models, source, how, compiler=compiler, flags=flags)


def asan(env):
    sanitized(env, "asan", "gcc", "address,undefined", SANITIZER, 3)


def msan(env):
    sanitized(env, "msan", "clang", "memory", {"MSAN_OPTIONS": "exitcode=99"}, 3)


def texts(env):
    """No goto, no paths; generator, hash and options; the same bytes the second time."""
    source, models = corpus(env)
    folder = env.scratch("promises", "vectors-again")

    def check(m):
        promises.check_origin(m, source)
        if m.target not in re.search(r"options: ([^\n]*)", m.source)[1]:
            raise Fail("the options do not name the target")
        if promises.emit(env, m.args, m.name, folder) != (m.source, m.header):
            raise Fail("other bytes the second time")
    promises.each(models, check)


def planted(env):
    """Mistakes that only vectors can have are found."""
    need("gcc")
    cpu.need("avx2")
    source, models = corpus(env)
    good = next(m for m in models if m.target == "avx2" and "mobile21" in m.origin or "digits" in m.origin and m.target == "avx2")
    folder = env.scratch("promises", "vectors-planted")

    def build(change, flags):
        text = change(good.source)
        if text == good.source:
            raise Fail("the violation was not planted")
        with open(os.path.join(folder, good.name + ".c"), "w") as f:
            f.write(text)
        shutil.copy(os.path.join(source, good.name + ".h"), folder)
        return promises.compile_one(good, "gcc", [*flags, *cpu.flags("avx2")], folder, folder)

    def objects(change):
        promises.check_object(good, "gcc", folder, build(change, ["-O2"]))

    def calls(change):
        build(change, ["-O2"])
        check_calls(folder, [good], source)

    def clean(change):
        flags = ["-O1", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
        build(change, flags)
        check_calls(folder, [good], source, SANITIZER, compiler="gcc", flags=flags)

    def inside(code):
        def change(text):
            brace = text.index("{\n", text.index(f"int {good.name}_run(void *arena", text.index("__FAST_MATH__"))) + 2
            return text[:brace] + f"  {code}\n" + text[brace:]
        return change

    wide = "typedef float wide __attribute__((vector_size(32))); "
    loose = "typedef float loose __attribute__((vector_size(32), aligned(4), may_alias)); "
    cases = {
        "input thought to be aligned": (inside(wide + "wide z = *(const wide *)(const void *)in0; if (z[0] == 77) return 9; "
                                               "*(wide *)(void *)out0 = z;"), clean),
        "vector past the end": (inside(loose + f"loose z = *(const loose *)(const void *)(in0 + {good.name.upper()}_INPUT0_ELEMENTS - 1); "
                                       "if (z[0] == 77 && z[7] == 78) return 9;"), clean),
        "vectors that fill the stack": (inside(wide + "volatile wide many[2048]; many[9] = (wide){0}; if (many[9][1] == 2) return 9;"), objects),
        "vectors that fill the stack, measured": (inside(wide + "volatile wide many[2048]; for (int i = 0; i < 2048; i++) many[i] = "
                                                         "(wide){0}; if (many[9][1] == 2) return 9;"), calls),
        "bits that depend on the address": (inside("if ((uintptr_t)in0 % 16) return 0;"), calls),
        "table that is written": (inside(wide + "static wide last; last += 1; if (last[0] == 9) return 9;"), objects),
    }
    for check in (objects, calls, clean):
        check(lambda t: t + "\n")  # the harness accepts a correct file
    for what, (change, check) in cases.items():
        try:
            check(change)
        except Fail as e:
            if str(e).startswith(("the violation was not planted", "compiling:")):
                raise
            continue
        raise Fail(f"a planted violation is not noticed: {what}")


def tests(env):
    out = [Test(f"promises/vectors-{name}", lambda n=name: one_build(env, n), cost=30) for name in BUILDS]
    out += [Test(f"promises/vectors-{t}", lambda t=t: emulated(env, t), cost=20) for t in cpu.OTHER]
    for fn in (asan, msan, texts, planted):
        out.append(Test(f"promises/vectors-{fn.__name__}", lambda fn=fn: fn(env), cost=40 if fn in (asan, msan) else 20))
    return out
