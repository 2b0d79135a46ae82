"""Promises of generated C (docs/c.md: no heap, no static data, bounded stack, no warnings, the same bits everywhere), each on
a corpus of models.

The corpus has graphs of the exec tests, some official cases, and real models.
One test per compiler and set of flags compiles every model, inspects the object files, links all into one program and runs it.
`planted` breaks a promise in one file after the other, and the check for that promise must fail.
"""
import json
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from lib import cfile, cpu, pick, tfile
from lib.core import ROOT, SANITIZER, Fail, Test, explain, need, run, tail

DIGITS = os.path.join(ROOT, "models", "digits.onnx")
WARN = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wvla", "-Werror"]
FEWEST = 60
# Compiler, flags. The self-test compares the bits of all of them with those of the interpreter.
BUILDS = {
    "gcc-O0": ("gcc", ["-O0"]),
    "gcc-O2": ("gcc", ["-O2", "-Wconversion", "-Wno-sign-conversion", "-Wshadow", "-Wcast-qual", "-Wundef", "-Wstrict-prototypes",
                       "-Wmissing-prototypes"]),
    "gcc-O3": ("gcc", ["-O3", *cpu.native_flags()]),
    "clang-O2": ("clang", ["-O2", *cpu.native_flags()]),
    "tcc": ("tcc", []),
}
REAL = {"silero_vad_op18_ifless.onnx": ["--shapes", "input:1x512,state:2x1x128"], "ppocr_cls.onnx": ["--shapes", "x:1x3x48x192"],
        "magika.onnx": []}


class Model:
    def __init__(self, name, origin, args):
        self.name, self.origin, self.args = name, origin, args
        self.source = self.header = ""

    def __str__(self):
        return f"{self.name} ({self.origin})"


def emit(env, args, name, folder, around=None, cwd=None):
    """Writes NAME.c and NAME.h; returns None if ingot refuses the model."""
    path = os.path.join(folder, name + ".c")
    got = run([env.ingot, *args, "--name", name, "--quiet", "-o", path], 120, env=around, cwd=cwd)
    if got.rc == 3:
        return None
    if got.rc:
        raise Fail(f"ingot {' '.join(args)}: {explain(got)}: {tail(got.text(), 4)}")
    with open(path) as f, open(path[:-1] + "h") as g:
        return f.read(), g.read()


def choose(env, ntexts=30, ncases=45):
    """Arguments of ingot for every model, with its origin."""
    found = [("digits", [DIGITS, "-d", "batch=1"]), ("digits, weights as text", [DIGITS, "-d", "batch=1", "--weights", "text"]),
             ("digits, batch up to 3", [DIGITS, "--max-shapes", "image:3x1x8x8"])]
    texts = [(t.name, [t.write(env)]) for t in tfile.files("exec")
             if t.form and "2000000000" not in t.body and "c" in t.one("engines", "c").split()]
    found += texts[::max(1, len(texts) // ntexts)]
    cases = pick.per_operator(env)
    found += [(c["name"], [c["model"], "--data", c["data"]]) for c in cases[::max(1, len(cases) // ncases)]]
    for name, args in REAL.items():
        path = os.path.join(env.build, "models", name)
        if os.path.exists(path):
            found.append((name, [path, *args]))
    return found


def corpus(env):
    def make():
        env.need_ingot()
        folder = env.scratch("promises", "c")
        shutil.rmtree(folder)
        os.makedirs(folder)
        out = []
        for i, (origin, args) in enumerate(choose(env)):
            m = Model(f"m{i}", origin, args)
            texts = emit(env, args, m.name, folder)
            if not texts:
                continue
            m.source, m.header = texts
            out.append(m)
        return folder, out
    return env.once("promises corpus", make)


def may_refuse(m):
    """Status 6 and above: the largest sizes do not match each other, or random contents are not valid indices."""
    return re.search(r"int64_t n\d", m.header) or "is out of range: the extent" in m.source


def light(models):
    """Without models that take long in a slow build."""
    return [m for m in models if cfile.macro(m.header, m.name.upper() + "_MULTIPLY_ADDS") < 50000000]


def each(models, fn):
    """Calls fn on every model, two at a time; reports all failures together."""
    def one(m):
        try:
            fn(m)
        except Fail as e:
            return f"{m}: {e}"
        return None
    with ThreadPoolExecutor(2) as pool:
        bad = [text for text in pool.map(one, models) if text]
    if bad:
        raise Fail(f"{len(bad)} of {len(models)} models: " + "\n  ".join(bad[:5]))


# ---- programs ----

def driver(folder, models, separate):
    """main.c that runs every model: its self-test, or with `separate` the run function on separate arrays."""
    lines = ["#include <stdint.h>", "#include <stdio.h>", "#include <stdlib.h>",
             "extern void *aligned_alloc(size_t align, size_t n);", cfile.LOOK if separate else ""]  # C99 headers lack it
    body = []
    for m in models:
        up = m.name.upper()
        lines.append(f'#include "{m.name}.h"')
        if separate:
            lines.append(cfile.caller(m.name, m.source))
            fine = "s && s < 6" if may_refuse(m) else "s"
            body.append(f'  s = check_{m.name}(); if ({fine}) bad = 1, printf("{m.name}: status %d\\n", s);')
        elif f"int {m.name}_selftest" in m.header:
            body.append(f'  p = aligned_alloc(64, {up}_SELFTEST_BYTES); s = {m.name}_selftest(p); free(p);\n'
                        f'  if (s) bad = 1, printf("{m.name}: self-test %d\\n", s); else count++;')
    text = "\n".join(lines) + "\nint main(void) {\n  int bad = 0, s = 0, count = 0;\n  void *p = 0;\n  (void)p;\n" + "\n".join(body) + \
        '\n  printf("%d\\n", count);\n  return bad;\n}\n'
    path = os.path.join(folder, "main.c")
    with open(path, "w") as f:
        f.write(text)
    return path


def link_and_run(command, folder, models, include, separate=False, env=None, libs=("-lm",), made=None):
    """made: folder of the object files, if it differs."""
    main = driver(folder, models, separate)
    objects = [os.path.join(made or folder, m.name + ".o") for m in models]
    program = os.path.join(folder, "main")
    cfile.cc([*command, "-I", include, "-o", program, main, *objects, *libs], "linking all models into one program")
    got = run([program], 240, env=env)
    if got.rc or got.timed_out:
        names = {m.name: m.origin for m in models}
        said = got.out.decode("utf-8", "replace") + got.text()
        said = re.sub(r"\bm\d+\b", lambda k: f"{k[0]} ({names.get(k[0], '?')})", said)
        raise Fail(f"{explain(got)}: {said[-1500:]}")
    return got.out.decode()


# ---- checks of one build ----

def check_stack(m, folder, root=None):
    with open(os.path.join(folder, m.name + ".ci")) as f:
        used = cfile.deepest(f.read(), root or m.name + "_run")
    bound = cfile.macro(m.header, m.name.upper() + "_STACK_BYTES")
    if used > bound:
        raise Fail(f"{used} bytes of stack, the header says {bound}")


def compile_one(m, compiler, flags, folder, source_folder):
    out = os.path.join(folder, m.name + ".o")
    gcc = ["-fstack-usage", "-fcallgraph-info=su"] if compiler.endswith("gcc") else []
    cfile.cc([compiler, *WARN, *flags, *gcc, "-c", "-o", out, os.path.join(source_folder, m.name + ".c")], "compiling")
    return out


def check_object(m, compiler, folder, out, size="size", extra=()):
    cfile.check_symbols(out, extra)
    if compiler == "tcc":  # tcc has no section for constants and puts them into .data
        cfile.check_data(out, size, (".bss", ".tdata", ".tbss"))
    else:
        cfile.check_data(out, size)
    cfile.check_external(out, m.name)
    if compiler.endswith("gcc"):
        check_stack(m, folder)


def taken(env, name):
    """The part of the corpus for a build: its folder, and all models with gcc -O2, whose objects other tests run."""
    source, models = corpus(env)
    return source, models if name == "gcc-O2" else env.share(models, 2, name)


def objects(env, name):
    """Compiles and inspects the models of a build, once; returns the folder of the object files."""
    def make():
        compiler, flags = BUILDS[name]
        need(compiler)
        source, models = taken(env, name)
        if len(models) < FEWEST / 2 and env.data:
            raise Fail(f"{len(models)} models, expected at least {FEWEST // 2}")
        folder = env.scratch("promises", name)
        helpers = ("__float", "__fix") if compiler == "tcc" else ()  # tcc calls its own library for 64-bit conversions

        def check(m):
            out = compile_one(m, compiler, flags, folder, source)
            check_object(m, compiler, folder, out, extra=helpers)
        each(models, check)
        return folder
    return env.once("promises objects " + name, make)


def one_build(env, name):
    folder = objects(env, name)
    compiler, flags = BUILDS[name]
    source, models = taken(env, name)
    said = link_and_run([compiler, *[f for f in flags if not f.startswith("-W")]], folder, models, source)
    if int(said.split()[-1]) < len(models) * 9 // 10:
        raise Fail(f"only {said.strip()} of {len(models)} files have a self-test")


def arm(env):
    """Cortex-M4, built as firmware: no warnings, no data, stack within its bound. Writes flash, RAM and stack of every model to
    a table."""
    need("arm-none-eabi-gcc")
    source, models = corpus(env)
    folder = env.scratch("promises", "arm")
    small = [m for m in models if len(m.source) < 200000]
    rows = {}

    def check(m):
        out = compile_one(m, "arm-none-eabi-gcc", ["-Os", "-ffreestanding", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"],
                          folder, source)
        check_object(m, "arm-none-eabi-gcc", folder, out, "arm-none-eabi-size", ("__aeabi_", "__"))
        flash, up = int(cfile.cc(["arm-none-eabi-size", out], "size").splitlines()[1].split()[0]), m.name.upper()
        arena, stack = cfile.macro(m.header, up + "_ARENA_BYTES"), cfile.macro(m.header, up + "_STACK_BYTES")
        rows[m.name] = (m.origin, flash, arena + stack, stack)
    each(small, check)
    path = os.path.join(env.scratch("promises"), "arm.txt")
    with open(path, "w") as f:
        f.write(f"{'model':44}{'flash':>10}{'RAM':>10}{'of it stack':>12}\n")
        f.writelines(f"{rows[m.name][0]:44}" + "{:10}{:10}{:12}\n".format(*rows[m.name][1:]) for m in small)
    most = [max(r[k] for r in rows.values()) for k in (1, 2, 3)]
    print("Cortex-M4: {} models, at most {} bytes of flash, {} of RAM with {} of stack; each in {}".format(
        len(small), *most, os.path.relpath(path, ROOT)), flush=True)


BOARD = """#include "%s.h"
#include <stdint.h>
extern uint32_t stack_top[];
void reset(void);
__attribute__((section(".vectors"), used)) static const void *const vectors[2] = {stack_top, (const void *)reset};
void *memcpy(void *to, const void *from, size_t n) {
  for (size_t i = 0; i < n; i++) ((volatile char *)to)[i] = ((const char *)from)[i];
  return to;
}
void *memmove(void *to, const void *from, size_t n) {
  volatile char *t = to;
  const char *f = from;
  if ((uintptr_t)to <= (uintptr_t)from) return memcpy(to, from, n);
  while (n--) t[n] = f[n];
  return to;
}
void *memset(void *to, int x, size_t n) {
  for (size_t i = 0; i < n; i++) ((volatile char *)to)[i] = (char)x;
  return to;
}
/* Semihosting: SYS_EXIT_EXTENDED with a status. */
static void leave(uint32_t status) {
  uint32_t block[2] = {0x20026, status};
  __asm__ volatile("mov r0, #0x20\\n mov r1, %%0\\n bkpt #0xab" : : "r"(block) : "r0", "r1", "memory");
}
__attribute__((aligned(64))) static unsigned char memory[%s_SELFTEST_BYTES];
void reset(void) {
  *(volatile uint32_t *)0xe000ed88 |= 0xf << 20; /* floating-point unit on */
  __asm__ volatile("dsb\\n isb");
  leave((uint32_t)%s_selftest(memory));
  for (;;) continue;
}
"""
SCRIPT = """MEMORY { flash (rx) : ORIGIN = 0, LENGTH = 4M  ram (rwx) : ORIGIN = 0x20000000, LENGTH = 4M }
SECTIONS {
  .text : { KEEP(*(.vectors)) *(.text*) *(.rodata*) } > flash
  .bss (NOLOAD) : { *(.bss*) *(COMMON) } > ram
  stack_top = 0x20000000 + 4M;
}
"""


def board(env):
    """The self-test on a simulated Cortex-M4 with only the compiler's library."""
    need("arm-none-eabi-gcc")
    need("qemu-system-arm")
    source, models = corpus(env)
    folder = env.scratch("promises", "board")
    with open(os.path.join(folder, "flash.ld"), "w") as f:
        f.write(SCRIPT)
    some = [m for m in models if f"{m.name}_selftest(" in m.header and len(m.source) < 200000]
    for m in some[:1] + some[1::12]:
        path, image = os.path.join(folder, m.name + ".c"), os.path.join(folder, m.name + ".elf")
        with open(path, "w") as f:
            f.write(BOARD % (m.name, m.name.upper(), m.name))
        cfile.cc(["arm-none-eabi-gcc", "-Os", "-std=c99", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16",
                  "-ffreestanding", "-nostdlib", "-I", source, "-T", os.path.join(folder, "flash.ld"), "-o", image, path,
                  os.path.join(source, m.name + ".c"), "-lgcc"], str(m))
        got = run(["qemu-system-arm", "-M", "mps2-an386", "-nographic", "-semihosting", "-kernel", image], 60)
        if got.rc or got.timed_out:
            raise Fail(f"{m}: the self-test on the board: {explain(got)}: {tail(got.text())}")


def elsewhere(env, machine, compiler, emulator, flags=()):
    """Another architecture, in an emulator: the same bits."""
    need(compiler)
    need(emulator)
    source, models = corpus(env)
    folder = env.scratch("promises", machine)
    some = [m for m in light(models) if "are little-endian" not in m.source][::2]
    each(some, lambda m: cfile.cc([compiler, *WARN, "-O2", *flags, "-c", "-o", os.path.join(folder, m.name + ".o"),
                                   os.path.join(source, m.name + ".c")], "compiling"))
    program = os.path.join(folder, "main")
    cfile.cc([compiler, "-static", "-I", source, "-o", program, driver(folder, some, False),
              *[os.path.join(folder, m.name + ".o") for m in some], "-lm"], "linking")
    got = run([emulator, program], 240)
    if got.rc:
        raise Fail(f"{explain(got)}: {tail(got.out.decode())}")


def aarch64(env):
    elsewhere(env, "aarch64", "aarch64-linux-gnu-gcc", "qemu-aarch64")


def ppc64(env):
    """A big-endian CPU, and one whose compiler contracts products to FMA by default."""
    elsewhere(env, "ppc64", "powerpc64-linux-gnu-gcc", "qemu-ppc64")


def check_origin(m, source):
    """The text has no goto and no paths; it names generator, model hash and options."""
    cfile.check_text(m.source)
    for word in (ROOT, source, "/tmp/"):
        if word in m.source + m.header:
            raise Fail(f"the text names a path: {word}")
    if not re.search(r"generated by ingot \d+\.\d+\.\d+ from .*\n \* model [0-9a-f]{16}, options: ", m.source):
        raise Fail("the text does not name generator, model hash and options")


def texts(env):
    """The text is the same in another folder, locale, time zone and home."""
    source, models = corpus(env)
    folder = env.scratch("promises", "again", "another folder")
    other = {"LC_ALL": "de_DE.UTF-8", "LANG": "tr_TR.UTF-8", "TZ": "Asia/Tokyo", "HOME": folder, "USER": "somebody", "TMPDIR": folder}

    def check(m):
        check_origin(m, source)
        first = m.args[0]
        model = os.path.join(folder, m.name, os.path.basename(first))  # the text names the file without its folder
        os.makedirs(os.path.dirname(model), exist_ok=True)
        for suffix in ("", ".bin"):
            if os.path.exists(first + suffix):
                shutil.copy(first + suffix, model + suffix)
        again = emit(env, [model, *m.args[1:]], m.name, folder, other, folder)
        if again != (m.source, m.header):
            raise Fail("other bytes in another folder, locale and time zone")
    each(models, check)


def headers(env):
    """The header alone, in C and C++, states what the caller must know."""
    source, models = corpus(env)
    words = ("ARENA_BYTES", "ARENA_ALIGN", "WEIGHT_BYTES", "STACK_BYTES", "MULTIPLY_ADDS", "INPUTS", "OUTPUTS")
    for m in models:
        for word in words:
            cfile.macro(m.header, f"{m.name.upper()}_{word}")
        for k in range(cfile.macro(m.header, m.name.upper() + "_OUTPUTS")):
            for word in ("NAME", "TYPE", "RANK", "SHAPE", "ELEMENTS"):
                if f"#define {m.name.upper()}_OUTPUT{k}_{word} " not in m.header:
                    raise Fail(f"{m}: no macro OUTPUT{k}_{word}")
    path = os.path.join(env.scratch("promises", "headers"), "all.c")
    with open(path, "w") as f:
        f.write("".join(f'#include "{m.name}.h"\n' for m in models))
    cfile.cc(["gcc", *WARN, "-I", source, "-fsyntax-only", path], "headers as C")
    if shutil.which("g++"):
        cfile.cc(["g++", "-Wall", "-Wextra", "-Werror", "-I", source, "-x", "c++", "-fsyntax-only", path], "headers as C++")


def sanitized(env, name, compiler, flags, how):
    need(compiler)
    source, models = corpus(env)
    models = light(models)
    folder = env.scratch("promises", name)
    flags = ["-O1", "-g1", *flags, "-fno-sanitize-recover=all"]
    each(models, lambda m: cfile.cc([compiler, *WARN, *flags, "-c", "-o", os.path.join(folder, m.name + ".o"),
                                     os.path.join(source, m.name + ".c")], "compiling"))
    for separate in (False, True):
        link_and_run([compiler, *flags], folder, models, source, separate, how)


def asan(env):
    sanitized(env, "asan", "gcc", ["-fsanitize=address,undefined"], SANITIZER)


def debug(env):
    """The debug profile gives the same bits; in it AddressSanitizer sees accesses from one tensor to the next."""
    need("gcc")
    source, models = corpus(env)
    folder = env.scratch("promises", "debug")
    own = []

    def build(m):
        d = Model(m.name, m.origin, m.args)
        d.source, d.header = emit(env, [*m.args, "--debug"], m.name, folder)
        cfile.cc(["gcc", *WARN, "-O0", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-c", "-o",
                  os.path.join(folder, m.name + ".o"), os.path.join(folder, m.name + ".c")], "compiling")
        own.append(d)
    each([m for i, m in enumerate(light(models)) if i % 3], build)
    if not any("static float own" in d.source for d in own):
        raise Fail("no file has arrays of its own")
    link_and_run(["gcc", "-O1", "-fsanitize=address,undefined"], folder, own, folder, False, SANITIZER)


def msan(env):
    sanitized(env, "msan", "clang", ["-fsanitize=memory"], {"MSAN_OPTIONS": "exitcode=99"})


def valgrind(env):
    need("valgrind")
    made = objects(env, "gcc-O2")
    source, models = corpus(env)
    quick = [m for m in models if cfile.macro(m.header, m.name.upper() + "_MULTIPLY_ADDS") < 200000]
    folder = env.scratch("promises", "valgrind")
    link_and_run(["gcc", "-g"], folder, quick, source, True, made=made)
    got = run(["valgrind", "-q", "--error-exitcode=9", "--leak-check=no", os.path.join(folder, "main")], 240)
    if got.rc:
        raise Fail(f"valgrind: {explain(got)}: {tail(got.text())}")
    if len(quick) < FEWEST and env.data:
        raise Fail(f"{len(quick)} models, expected at least {FEWEST}")


THREADS = """#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
%s
typedef int Test(void *memory);
static const struct { Test *test; size_t bytes; } tests[] = {%s};
static void *work(void *arg) {
  long bad = 0;
  for (int round = 0; round < 3; round++)
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
      void *p = aligned_alloc(64, tests[i].bytes);
      bad |= tests[i].test(p);
      free(p);
    }
  (void)arg;
  return (void *)bad;
}
int main(void) {
  pthread_t t[4];
  long sum = 0;
  for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, work, NULL);
  for (int i = 0; i < 4; i++) {
    void *r;
    pthread_join(t[i], &r);
    sum |= (long)r;
  }
  return sum ? 1 : 0;
}
"""


def run_threads(folder, source, models, files, flags):
    path = os.path.join(folder, "threads.c")
    with open(path, "w") as f:
        f.write(THREADS % ("\n".join(f'#include "{m.name}.h"' for m in models),
                           ", ".join(f"{{{m.name}_selftest, {m.name.upper()}_SELFTEST_BYTES}}" for m in models)))
    program = os.path.join(folder, "threads")
    cfile.cc(["gcc", "-O1", *flags, "-I", source, "-o", program, path, *files, "-lm", "-lpthread"], "compiling")
    got = run(["setarch", "-R", program] if shutil.which("setarch") else [program], 240, env={"TSAN_OPTIONS": "exitcode=99"})
    if got.rc:
        raise Fail(f"four threads at once: {explain(got)}: {tail(got.text())}")


def threads(env):
    """Four threads with separate arenas get the same bits; ThreadSanitizer finds no race in some of the models."""
    made = objects(env, "gcc-O2")
    source, models = corpus(env)
    tested = [m for m in light(models) if "_selftest(" in m.header]
    some = [m for m in tested if len(m.source) < 100000][::6]
    run_threads(env.scratch("promises", "threads"), source, tested, [os.path.join(made, m.name + ".o") for m in tested], [])
    run_threads(env.scratch("promises", "races"), source, some, [os.path.join(source, m.name + ".c") for m in some], ["-fsanitize=thread"])


# ---- names ----

HOSTILE = ["*/ int evil(void); /*", 'a"b\\', "new\nline", "??/\n??'", "x //", "#define x", "%s%n", "\u00e4\u2028", "a\\\nb", "'"]
SHAPE = "graph {g} (%x {x}: f32[2,3], %y {y}: f32[3]) {{\n  %a {a}: f32[2,3] = add(%x, %y)\n  %b {b}: f32[2,3] = exp(%a)\n" \
        "  %c: f32[2,3] = const {{1, 2, 3, 4, 5, 6}}\n  %d: f32[2,3] = mul(%b, %c)\n  return %d {d}\n}}\n"


def quote(text):
    return '"' + "".join(ch if ch.isascii() and ch.isprintable() and ch not in '"\\' else
                         "".join(f"\\x{b:02x}" for b in ch.encode()) for ch in text) + '"'


def names(env):
    """Two models that differ only in names: the same tokens, except for the strings with the names."""
    env.need_ingot()
    folder = env.scratch("promises", "names")
    streams = []
    for i, style in enumerate((lambda k: f"v{k}", lambda k: HOSTILE[k % len(HOSTILE)])):
        for shift in range(len(HOSTILE) if i else 1):
            path = os.path.join(folder, f"g{i}_{shift}.ing")
            with open(path, "w") as f:
                f.write(SHAPE.format(g="", **{v: quote(style(k + shift)) for k, v in enumerate("xyabd")}))
            streams.append(strip(emit(env, [path], "net", folder)))
    onnx_names(env, folder, streams)
    if len(streams) < 2 or any(s != streams[0] for s in streams[:1 + len(HOSTILE)]):
        raise Fail("names of a text change the tokens of the C file")
    if any(s != streams[1 + len(HOSTILE)] for s in streams[1 + len(HOSTILE):]):
        raise Fail("names of an ONNX file change the tokens of the C file")
    cfile.cc(["gcc", *WARN, "-trigraphs", "-c", "-o", os.path.join(folder, "net.o"), os.path.join(folder, "net.c")], "hostile names")
    cfile.cc(["nm", os.path.join(folder, "net.o")], "nm")


def strip(texts):
    """Tokens of the C file, without the model hash, the strings after _NAME, those of NAME_why, and names in the prototype."""
    def nameless(m):
        wrong = [n for n in re.findall(r"(\w+)(?=,|$)", m[2]) if not re.fullmatch("[a-z][a-z0-9_]*", n)]
        if wrong:
            raise Fail(f"parameters called {wrong}")
        return m[1] + re.sub(r"\w+(?=,|$)", "", m[2]) + ");"
    text = re.sub(r'(#define \w+_NAME )"(?:\\.|[^"\\\n])*"\n', r'\1""\n', texts[0])
    text = re.sub(r'(static const char status\d+\[\] =)(?:\s+"(?:\\.|[^"\\\n])*")+;', r'\1 "";', text)
    text = re.sub(r"#define \w+_(?:INPUT|OUTPUT|SIZE)_\w+ (\w+)\n", r"\1\n", text)
    return cfile.tokens(re.sub(r"(int \w+_run\(void \*arena)([^()]*)\);", nameless, text))


MAKE_ONNX = """
import sys
from onnx import TensorProto as T, helper as h
names = eval(sys.argv[1])
for k, n in enumerate(names):
    g = h.make_graph([h.make_node('Conv', [n[0], n[1]], [n[2]], name=n[3]), h.make_node('Softmax', [n[2]], [n[4]], name=n[0])], n[1],
                     [h.make_tensor_value_info(n[0], T.FLOAT, (1, 1, 5, 5))], [h.make_tensor_value_info(n[4], T.FLOAT, None)],
                     [h.make_tensor(n[1], T.FLOAT, (2, 1, 3, 3), [x / 8 for x in range(18)])], doc_string=n[0])
    m = h.make_model(g, opset_imports=[h.make_opsetid('', 17)], producer_name=n[0])
    open(f'{sys.argv[2]}/n{k}.onnx', 'wb').write(m.SerializeToString())
"""


def onnx_names(env, folder, streams):
    if not env.python:
        return
    sets = [["a", "b", "c", "d", "e"]] + [[f"{k}{HOSTILE[(s + k) % len(HOSTILE)]}" for k in range(5)] for s in range(len(HOSTILE))]
    cfile.cc([env.python, "-c", MAKE_ONNX, repr(sets), folder], "making ONNX files")
    for k in range(len(sets)):
        streams.append(strip(emit(env, [os.path.join(folder, f"n{k}.onnx")], "net", folder)))


def same_tokens(texts, others):
    if strip(texts) != strip(others):
        raise Fail("hostile names change the tokens of the C file")


RENAME = """
import json, sys
import onnx
jobs, hostile = json.load(open(sys.argv[1]))
def other(name, seen):
    return name and seen.setdefault(name, hostile[len(seen) % len(hostile)] + str(len(seen)))
def graph(g, seen):
    g.name = g.doc_string = other(g.name or 'g', seen)
    for v in [*g.input, *g.output, *g.value_info, *g.initializer]:
        v.name = other(v.name, seen)
    for n in g.node:
        n.name = n.doc_string = hostile[len(seen) % len(hostile)]
        n.input[:], n.output[:] = ([other(x, seen) for x in part] for part in (n.input, n.output))
        for a in n.attribute:
            if n.op_type == 'Gradient':  # its attributes are names of values
                a.s, a.strings[:] = other(a.s.decode(), seen).encode(), [other(x.decode(), seen).encode() for x in a.strings]
            for sub in [a.g] * a.HasField('g') + list(a.graphs):
                graph(sub, seen)
for path, to in jobs:
    m = onnx.load(path)
    m.producer_name = m.doc_string = hostile[0]
    graph(m.graph, {})
    onnx.save(m, to)
"""


def renamed(env):
    """All ONNX models of the corpus with hostile names everywhere: the same tokens."""
    python = env.need_python()
    _, models = corpus(env)
    folder = env.scratch("promises", "renamed")
    some = [m for m in models if m.args[0].endswith(".onnx") and not any("-shapes" in a for a in m.args)]
    jobs = [(m.args[0], os.path.join(folder, m.name + ".onnx")) for m in some]
    with open(os.path.join(folder, "jobs.json"), "w") as f:
        json.dump([jobs, HOSTILE], f)
    cfile.cc([python, "-c", RENAME, os.path.join(folder, "jobs.json")], "renaming")

    def check(m):
        again = emit(env, [os.path.join(folder, m.name + ".onnx"), *m.args[1:]], m.name, folder)
        if not again:
            raise Fail("refused with other names")
        same_tokens(again, (m.source, m.header))
    each(some, check)
    if env.data and len(some) < 40:
        raise Fail(f"{len(some)} models, expected at least 40")


# ---- weights ----

def weights(env):
    """Numbers, strings, a file, a pointer: the same bits. A file of another model is refused."""
    env.need_ingot()
    folder = env.scratch("promises", "weights")
    base = [DIGITS, "-d", "batch=1"]
    for how in ("literal", "text", "file", "pointer"):
        m = Model("w" + how, how, base)
        m.source, m.header = emit(env, [*base, "--weights", how], m.name, folder)
        cfile.cc(["gcc", *WARN, "-O1", f"-I{folder}", "-c", "-o", os.path.join(folder, m.name + ".o"),
                  os.path.join(folder, m.name + ".c")], how)
        cfile.check_data(os.path.join(folder, m.name + ".o"))
        if how != "pointer":
            link_and_run(["gcc"], folder, [m], folder)
    blob = os.path.join(folder, "wpointer.bin")
    main = os.path.join(folder, "pointer.c")
    with open(main, "w") as f:
        f.write('#include "wpointer.h"\n#include <stdio.h>\n#include <stdlib.h>\nint main(int n, char **v) {\n  (void)n;\n'
                '  char *w = aligned_alloc(64, 1 << 20), *p = aligned_alloc(64, WPOINTER_SELFTEST_BYTES);\n'
                '  FILE *f = fopen(v[1], "rb");\n  size_t k = fread(w, 1, 1 << 20, f);\n  (void)k;\n  fclose(f);\n'
                '  int s = wpointer_selftest(p, w);\n  free(w);\n  free(p);\n  return s;\n}\n')
    program = os.path.join(folder, "pointer")
    cfile.cc(["gcc", "-I", folder, "-o", program, main, os.path.join(folder, "wpointer.o"), "-lm"], "pointer")
    with open(blob, "rb") as f:
        data = bytearray(f.read())
    for place, want in ((None, 0), (len(data) // 8 * 4 + 3, 3), (20, 4)):  # as it is; an exponent; the hash in front
        bad = bytearray(data)
        if place is not None:
            bad[place] ^= 1
        with open(os.path.join(folder, "bad.bin"), "wb") as f:
            f.write(bad)
        got = run([program, os.path.join(folder, "bad.bin")], 60)
        if got.rc != want:
            raise Fail(f"weights changed at {place}: status {got.rc}, expected {want}")


POINTERS = """#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
extern void *aligned_alloc(size_t align, size_t n);
%s
static void *load(const char *path) {
  char *w = aligned_alloc(64, 32 << 20);
  FILE *f = fopen(path, "rb");
  if (f && w) w[fread(w, 1, (32 << 20) - 1, f)] = 0;
  if (f) fclose(f);
  return w;
}
int main(void) {
  int bad = 0, s;
  void *p, *w;
%s
  return bad;
}
"""


def pointers(env):
    """All models with weights passed by pointer, from the written file."""
    need("tcc")
    _, models = corpus(env)
    folder = env.scratch("promises", "pointers")
    made = []

    def build(m):
        got = Model(m.name, m.origin, m.args)
        got.source, got.header = emit(env, [*m.args, "--weights", "pointer"], m.name, folder)
        if "const void *weights" not in got.header:
            return  # it has no weights file
        cfile.cc(["tcc", "-c", "-o", os.path.join(folder, m.name + ".o"), os.path.join(folder, m.name + ".c")], "compiling")
        made.append(got)
    each([m for m in light(models) if "_selftest(" in m.header and "--weights" not in m.args], build)
    calls = [f'  p = aligned_alloc(64, {m.name.upper()}_SELFTEST_BYTES), w = load("{os.path.join(folder, m.name)}.bin"), '
             f's = {m.name}_selftest(p, w), free(p), free(w);\n  if (s) bad = 1, printf("{m}: %d\\n", s);' for m in made]
    with open(os.path.join(folder, "main.c"), "w") as f:
        f.write(POINTERS % ("\n".join(f'#include "{m.name}.h"' for m in made), "\n".join(calls)))
    program = os.path.join(folder, "main")
    cfile.cc(["tcc", "-I", folder, "-o", program, os.path.join(folder, "main.c"), *[os.path.join(folder, m.name + ".o") for m in made], "-lm"], "linking")
    got = run([program], 240)
    if got.rc:
        raise Fail(f"{explain(got)}: {tail(got.out.decode())}")


# ---- planted violations ----

def planted(env):
    """Every check, on a file that breaks its promise."""
    need("gcc")
    source, models = corpus(env)
    good = next(m for m in models if m.origin == "digits")
    folder = env.scratch("promises", "planted")

    def spoiled(change):
        m = Model(good.name, "planted", [])
        m.header = good.header
        m.source = change(good.source)
        if m.source == good.source:
            raise Fail("the violation was not planted")
        for suffix, text in ((".c", m.source), (".h", m.header)):
            with open(os.path.join(folder, m.name + suffix), "w") as f:
                f.write(text)
        return m

    def inside(code, before=""):
        """Inserts code at the beginning of the run function, and declarations before it."""
        def change(text):
            at = text.index(f"\nint {good.name}_run(void *arena", text.index("#ifdef __FAST_MATH__"))
            brace = text.index("{\n", at) + 2
            return text[:at] + "\n" + before + text[at:brace] + "  " + code + "\n" + text[brace:]
        return change

    def objects(m, flags=("-O2",)):
        out = compile_one(m, "gcc", list(flags), folder, folder)
        check_object(m, "gcc", folder, out)

    def runs(m, flags=("-O1",), separate=True, how=None, compiler="gcc"):
        cfile.cc([compiler, *flags, "-c", "-o", os.path.join(folder, m.name + ".o"), os.path.join(folder, m.name + ".c")], "compiling")
        link_and_run([compiler, *flags], folder, [m], folder, separate, how)

    asan_flags = ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    cases = {
        "heap": (inside("if (!arena) return !malloc(9);", "#include <stdlib.h>\n"), objects),
        "printing": (inside('if (!arena) puts("x");', "#include <stdio.h>\n"), objects),
        "static data": (inside("counter++; if (counter == 99) return 9;", "static int counter;\n"), objects),
        "stack": (inside("volatile char big[65536]; big[9] = 1; if (big[9] == 2) return 9;"), objects),
        "variable array": (inside("char v[(uintptr_t)arena % 64 + 1]; v[0] = 0; if (v[0]) return 9;"), objects),
        "recursion": (inside("if (again(9) == 77) return 9;",
                             "static int again(int n);\nstatic int again(int n) { return n > 0 ? again(n - 1) + again(n - 2) : n; }\n"),
                      lambda m: objects(m, ("-O0",))),
        "pointer to function": (inside("if (call(arena ? f : g)) return 9;",
                                       "static int f(void) { return 0; }\nstatic int g(void) { return 1; }\n"
                                       "static int call(int (*h)(void)) { return h(); }\n"), lambda m: objects(m, ("-O0",))),
        "pointer in the text": (inside("", "static int (*table)(void);\n"), lambda m: cfile.check_text(m.source)),
        "jump": (inside("if (!arena) goto end;\nend:;"), lambda m: cfile.check_text(m.source)),
        "warning": (inside("int unused;"), objects),
        "external name": (inside("helper();", "void helper(void);\nvoid helper(void) {}\n"), objects),
        "overflow of an array": (inside("out0[10] = 1;"), lambda m: runs(m, asan_flags, True, SANITIZER)),
        "overflow of a number": (inside("volatile int k = 2147483647; k += 1; if (k == 5) return 9;"),
                                 lambda m: runs(m, asan_flags, True, SANITIZER)),
        "weight": (lambda t: re.sub(r"(static const float w\d+\[\d\d+\] = \{-?)(\d)", lambda k: k[1] + str((int(k[2]) + 1) % 10), t,
                                    count=1), lambda m: runs(m, separate=False)),
        "order of a sum": (lambda t: t.replace(" < 64; i++)", " < 63; i++)", 1) if " < 64; i++)" in t else
                           re.sub(r"(for \(ptrdiff_t (\w) = 0; \2 < )(\d+)(; \2\+\+\) \{)",
                                  lambda k: f"{k[1]}{int(k[3]) - 1}{k[4]}", t, count=1), lambda m: runs(m, separate=False)),
        "name that leaves its comment": (lambda t: t.replace("/* ", "/* */ int evil(void); /* ", 1),
                                         lambda m: same_tokens((m.source, m.header), (good.source, good.header))),
        "path": (lambda t: t.replace("generated by ingot", f"generated in {source} by ingot", 1), lambda m: check_origin(m, source)),
        "model hash": (lambda t: re.sub(r"\* model [0-9a-f]{16}", "* model", t), lambda m: check_origin(m, source)),
        "state between runs": (inside("calls++; out0[0] = (float)calls;", "static int calls;\n"),
                               lambda m: run_threads(folder, folder, [m], [os.path.join(folder, m.name + ".c")], ["-fsanitize=thread"])),
    }
    if shutil.which("clang"):
        cases["unset memory"] = (inside("if (((unsigned char *)arena)[9] == 3) return 9;"),
                                 lambda m: runs(m, ("-O1", "-fsanitize=memory"), True, {"MSAN_OPTIONS": "exitcode=99"}, "clang"))
    def between(m):
        """An access from one tensor to the next: only the debug profile shows it."""
        text = emit(env, [*good.args, "--debug"], good.name, folder)[0]
        at = re.search(r"  float \*const (t\d+) = \(float \*\)\(void \*\)(own\d+);[^\n]*\n", text)
        size = re.search(rf"static float {at[2]}\[(\d+)\]", text)[1]
        with open(os.path.join(folder, good.name + ".c"), "w") as f:
            f.write(text[:at.end()] + f"  {at[1]}[{size}] = 1;\n" + text[at.end():])
        runs(m, asan_flags, True, SANITIZER)
    cases["overflow into another tensor"] = (lambda t: t + "\n", between)
    objects(spoiled(lambda t: t + "\n"))  # the harness accepts a correct file
    runs(spoiled(lambda t: t + "\n"), asan_flags, True, SANITIZER)
    for what, (change, check) in cases.items():
        m = spoiled(change)
        try:
            check(m)
        except Fail:
            continue
        raise Fail(f"a planted violation is not noticed: {what}")
    for flags in (["-ffast-math"], ["-Ofast"]):
        got = run(["gcc", *flags, "-c", "-o", os.path.join(folder, "x.o"), os.path.join(source, good.name + ".c")], 60)
        if got.rc == 0 or "ffast-math" not in got.text():
            raise Fail(f"gcc {flags[0]} is not refused")


def tests(env):
    out = [Test(f"promises/{name}", lambda n=name: one_build(env, n), cost=30) for name in BUILDS]
    for fn in (asan, debug, msan, texts, headers, arm, board, aarch64, ppc64, valgrind, threads, names, renamed, weights, pointers, planted):
        out.append(Test(f"promises/{fn.__name__}", lambda fn=fn: fn(env), cost=40 if fn in (asan, msan) else 10))
    return out
