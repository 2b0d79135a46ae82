"""Programs on vectors as C: the bits of the interpreter, stored in the self-test, for every target, in both forms, with every
compiler.

test/vec has programs written by hand; lib/vecprog.py generates those that try every operator on every type.
Also: no warnings, a bounded stack, no findings of sanitizers.
"""
import os
import re
import shutil
from lib import cfile, cpu, vecprog
from lib.core import ROOT, SANITIZER, Fail, Test, explain, need, run, tail
from suite import promises

FOLDER = os.path.join(ROOT, "test", "vec")
# Target, compiler, flags. -DINGOT_PORTABLE: loops over lanes, for any target.
BUILDS = {
    "scalar-gcc-O3": ("scalar", "gcc", ["-O3", *cpu.native_flags()]),
    "scalar-tcc": ("scalar", "tcc", []),
    "sse2-gcc-O2": ("sse2", "gcc", ["-O2"]),
    "sse2-clang-O2": ("sse2", "clang", ["-O2"]),
    "avx2-gcc-O0": ("avx2", "gcc", ["-O0", *cpu.flags("avx2")]),
    "avx2-gcc-O2": ("avx2", "gcc", ["-O2", *cpu.flags("avx2")]),
    "avx2-gcc-O3": ("avx2", "gcc", ["-O3", *cpu.flags("avx2")]),
    "avx2-clang-O2": ("avx2", "clang", ["-O2", *cpu.flags("avx2")]),
    "avx2-portable": ("avx2", "clang", ["-O1", *cpu.flags("avx2"), "-DINGOT_PORTABLE"]),
    "avx512-gcc-O2": ("avx512", "gcc", ["-O2", *cpu.flags("avx512")]),
    "avx512-clang-O2": ("avx512", "clang", ["-O2", *cpu.flags("avx512")]),
    "avx512-tcc": ("avx512", "tcc", ["-DINGOT_PORTABLE"]),
}
FAST = (("fast", 16), ("fused", 5), ("fused", 24), ("single", 8))  # of programs with `math fast`, and lanes
SANITIZED = ["-O1", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def programs(env):
    """Text files, written once."""
    def make():
        folder = env.scratch("vectors", "text")
        found = []
        for name in sorted(os.listdir(FOLDER)):
            found.append((name[:-4], os.path.join(FOLDER, name)))
        for name, text in [vecprog.fast(*f) for f in FAST] + vecprog.all_programs():
            path = os.path.join(folder, name + ".ing")
            with open(path, "w") as f:
                f.write(text)
            found.append((name, path))
        return found
    return env.once("vector programs", make)


def without_subnormals(path, folder):
    """A copy in which small normal numbers replace subnormals, for vectors that flush subnormals to zero."""
    with open(path) as f:
        text = f.read()
    copy = os.path.join(folder, "normal_" + os.path.basename(path))
    with open(copy, "w") as f:
        text = re.sub(r"-?\b\d[\d.]*e-(?:3[89]|4\d)\b", lambda m: m[0] if abs(float(m[0])) >= 1.1754943e-38 else "1e-30", text)
        f.write(text.replace("bitcast.f32(b)", "bitcast.f32(or(b, 8388608:u32))"))
    return copy


def sources(env, target):
    def make():
        folder = env.scratch("vectors", target)
        out = []
        for name, path in programs(env):
            if cpu.TABLE[target].get("flushes"):
                path = without_subnormals(path, folder)
            m = promises.Model("v_" + name, name, ["compile", path, "--march", target, "--selftest"])
            texts = promises.emit(env, m.args, m.name, folder)
            if not texts:
                raise Fail(f"{name} is refused")
            m.source, m.header = texts
            if f"int {m.name}_selftest" not in m.header:
                raise Fail(f"{name} has no self-test: the interpreter does not run it")
            out.append(m)
        return folder, out
    return env.once("vector sources " + target, make)


def share(env, models, name):
    """All programs written by hand or with `math fast`; each build takes some of the generated ones."""
    hand = len(os.listdir(FOLDER)) + len(FAST)
    return models[:hand] + env.share(models[hand:], 40 if name.startswith("sanitized") else 20, name)


def build(env, name, target, compiler, flags, around=None):
    need(compiler)
    if compiler != "tcc":  # it has only loops
        cpu.need(target)
    source, models = sources(env, target)
    models = share(env, models, name)
    folder = env.scratch("vectors", name)

    def check(m):
        out = promises.compile_one(m, compiler, flags, folder, source)
        if "sanitize" not in " ".join(flags):
            promises.check_object(m, compiler, folder, out, extra=("__float", "__fix") if compiler == "tcc" else ())
    promises.each(models, check)
    promises.link_and_run([compiler, *flags], folder, models, source, env=around)


def emulated(env, target, how, level):
    """Vectors of another architecture, in an emulator; clang only compiles."""
    compiler, emulator = (need(x) for x in cpu.OTHER[target])
    source, models = sources(env, target)
    folder = env.scratch("vectors", f"{target}-{how}{level}")
    some = share(env, models, f"{target}-{how}{level}")
    with_, flags = (compiler, []) if how == "gcc" else (need("clang"), ["--target=" + compiler[:-len("-gcc")]])
    promises.each(some, lambda m: promises.compile_one(m, with_, [*flags, level, *cpu.flags(target)], folder, source))
    program = os.path.join(folder, "main")
    cfile.cc([compiler, "-static", "-I", source, "-o", program, promises.driver(folder, some, False),
              *[os.path.join(folder, m.name + ".o") for m in some], "-lm"], "linking")
    got = run([emulator, program], 240)
    if got.rc or got.timed_out:
        raise Fail(f"{explain(got)}: {tail(got.out.decode())}")


def forms(env):
    """Vectors where they should be: named variables, no arrays, no loops over lanes; elsewhere neither vectors nor names."""
    _, models = sources(env, "avx2")
    gemm = next(m for m in models if m.origin == "gemm")
    vector, _, rest = gemm.source.partition("#if IG_VECTORS\n  ")[2].partition("#else\n")
    portable = rest.partition("#endif\n")[0]
    for text, has, lacks in ((vector, ("ig_f32x8 acc11", "[k + 1280]"), ("[z]", "int z")),
                             (portable, ("float r0[6][16]", "int z"), ("ig_", "acc"))):
        for word in has:
            if word not in text:
                raise Fail(f"'{word}' is missing in\n{text}")
        for word in lacks:
            if word in text.replace("ig_maxf", ""):
                raise Fail(f"'{word}' stands in\n{text}")


TILE = """prog tile
buf a: in f32[{r},64]
buf b: in f32[{v},64,8]
buf y: out f32[{r},{v},8]
buf acc: reg f32x8[{r},{v}]
buf w: reg f32x8[{v}]
kernel "tile" {{
  for i in 0..{r} unroll {{ for j in 0..{v} unroll {{ acc[i, j] = splat.8(0.0) }} }}
  for k in 0..64 {{
    for j in 0..{v} unroll {{ w[j] = b[j, k, 0:8] }}
    for i in 0..{r} unroll {{ for j in 0..{v} unroll {{ acc[i, j] = fma(splat.8(a[i, k]), w[j], acc[i, j]) }} }}
  }}
  for i in 0..{r} unroll {{ for j in 0..{v} unroll {{ y[i, j, 0:8] = acc[i, j] }} }}
}}
"""


def held(env):
    """A vector that a few products read is pinned in a register, if one is free."""
    folder = env.scratch("vectors", "held")
    for r, v, times in ((4, 3, 3), (6, 2, 2), (3, 4, 0), (8, 1, 0), (1, 8, 0)):
        name = f"tile{r}x{v}"
        path = os.path.join(folder, name + ".ing")
        with open(path, "w") as f:
            f.write(TILE.format(r=r, v=v))
        ready = path.replace(".ing", ".prog")
        run([env.ingot, "opt", path, "--march", "avx2", "--start=schedule", "--output", ready], 60)
        source, _ = promises.emit(env, ["compile", ready, "--march", "avx2"], name, folder)
        count = source.count("IG_PIN(") - source.count("define IG_PIN(")
        if count != times:
            raise Fail(f"{name} holds {count} vectors, expected {times}:\n{source}")


ROOTS = """buf e: in f64[4]
buf z: out f32[4]
buf d: out f64[4]
"""


def roots(env):
    """A scalar square root in AVX code is a VEX instruction: the SSE form would wait for all upper halves."""
    folder = env.scratch("vectors", "roots")
    head, _, kernel = TILE.format(r=4, v=2).partition("kernel")
    body = "kernel \"root\" { for i in 0..4 { z[i] = sqrt(a[i, 0]) d[i] = sqrt(e[i]) } }\n"
    path = os.path.join(folder, "roots.ing")
    with open(path, "w") as f:
        f.write(head + ROOTS + "kernel" + kernel + body)
    ready = path.replace(".ing", ".prog")
    run([env.ingot, "opt", path, "--march", "avx2", "--start=schedule", "--output", ready], 60)
    promises.emit(env, ["compile", ready, "--march", "avx2"], "roots", folder)
    for compiler in ("gcc", "clang"):
        for flags in ([], cpu.flags("avx2")):
            if not shutil.which(compiler):
                continue
            made = os.path.join(folder, "roots.s")
            cfile.cc([compiler, "-O2", "-w", *flags, "-S", os.path.join(folder, "roots.c"), "-o", made], "the square roots")
            with open(made) as f:
                found = [line.split()[0] for line in f if re.match(r"\s+v?sqrts[sd]\s", line)]
            if not {"vsqrtss", "vsqrtsd"} <= set(found) or any(not x.startswith("v") for x in found):
                raise Fail(f"{compiler} {flags}: square roots are {found}")


def legal(env, target):
    """Programs as `legalize` leaves them compute the same."""
    folder = env.scratch("vectors", "legal-" + target)
    for name, path in share(env, programs(env), "legal-" + target):
        with open(path) as f:
            if "\nsym " in f.read():  # a run needs sizes
                continue
        ready = os.path.join(folder, name + ".prog")
        got = run([env.ingot, "opt", path, "--march", target, "--start=unroll", "--stop=legalize", "--check", "--output", ready], 60)
        if got.rc:
            raise Fail(f"{name}: {explain(got)}: {tail(got.err.decode())}")
        results = []
        for text in (path, ready):
            out = ready + ".npz"
            got = run([env.ingot, "run", text, "--seed", "1", "--quiet", "--output", out], 120)
            if got.rc:
                raise Fail(f"{name}: {explain(got)}: {tail(got.err.decode())}")
            with open(out, "rb") as f:
                results.append(f.read())
        if results[0] != results[1]:
            raise Fail(f"{name} computes something else")


def sums(env):
    """NEON: every multiply-add is one instruction, also where compilers stop inlining."""
    compiler, folder = promises.need("aarch64-linux-gnu-gcc"), env.scratch("vectors", "sums")
    path = os.path.join(folder, "tile.ing")
    with open(path, "w") as f:
        f.write(TILE.format(r=12, v=8))
    promises.emit(env, ["compile", path, "--march", "neon"], "tile", folder)
    cfile.cc([compiler, "-O2", "-S", "-o", os.path.join(folder, "tile.s"), os.path.join(folder, "tile.c")], "compiling")
    with open(os.path.join(folder, "tile.s")) as f:
        text = f.read()
    if text.count("\tfmla\t") < 12 * 8 * 2 or "ig_fma" in text:
        raise Fail(f"{text.count('fmla')} instructions for {12 * 8 * 2} sums, {text.count('ig_fma')} calls")


# ---- kernels that gcc compiles in reasonable time ----

def numbers(n):
    return ", ".join(str((k * 37) % 19 - 9) for k in range(n))


def window(group, pad):
    return f"{{group = {group}, stride = [1,1], dilation = [1,1], pad_lo = [{pad},{pad}], pad_hi = [{pad},{pad}]}}"


# A depthwise int8 convolution with TFLite's requantization: the sign of the sum selects the rounding term.
DEPTHWISE = f"""graph (%x "x": i8[1,112,14,14]) {{
  %w: i32[112,1,5,5] = const {{{numbers(2800)}}}
  %b: i32[112,1,1] = const {{{numbers(112)}}}
  %k: f32[112,1,1] = const {{{numbers(112)}}}
  %z: i32[] = const {{0}}
  %up: f32[112,1,1] = const {{{numbers(112)}}}
  %down: f32[] = const {{0.49}}
  %1: i32[1,112,14,14] = cast(%x) {{to = i32}}
  %2: i32[1,112,14,14] = conv(%1, %w) {window(112, 2)}
  %3: i32[1,112,14,14] = add(%2, %b)
  %4: f32[1,112,14,14] = cast(%3) {{to = f32}}
  %5: f32[1,112,14,14] = mul(%4, %k)
  %6: bool[1,112,14,14] = lt(%3, %z)
  %7: f32[1,112,14,14] = select(%6, %down, %up)
  %8: f32[1,112,14,14] = add(%5, %7)
  %9: f32[1,112,14,14] = floor(%8)
  %y: i8[1,112,14,14] = cast(%9) {{to = i8, sat = 1}}
  return %y "y"
}}
"""
# A convolution with 16-bit activations whose rows fill 15 of 16 lanes.
PARTIAL = f"""graph (%x "x": f32[1,16,15,15]) {{
  %w: f32[64,16,3,3] = const {{{numbers(9216)}}}
  %b: f32[64,1,1] = const {{{numbers(64)}}}
  %s: f32[] = const {{0.01}}
  %1: f32[1,64,15,15] = conv(%x, %w) {window(1, 1)}
  %2: f32[1,64,15,15] = add(%1, %b)
  %3: f32[1,64,15,15] = div(%2, %s)
  %4: f32[1,64,15,15] = round(%3)
  %5: u16[1,64,15,15] = cast(%4) {{to = u16, sat = 1}}
  %6: f32[1,64,15,15] = cast(%5) {{to = f32}}
  %y: f32[1,64,15,15] = mul(%6, %s)
  return %y "y"
}}
"""
LARGEST, GCC_SECONDS = 60000, 3  # bytes of C text of a function; CPU seconds (0.6 on the machine that measured it, 6 to 7 before)


def kernel_size(env, text, name):
    """The epilogue of a kernel is vector code, not one copy per lane, and no convolution is computed twice."""
    folder = env.scratch("vectors", "size-" + name)
    path, made = os.path.join(folder, "g.ing"), os.path.join(folder, "g.c")
    with open(path, "w") as f:
        f.write(text)
    got = run([env.need_ingot(), "compile", path, "--march", "avx512", "-o", made, "--quiet"], 60)
    if got.rc:
        raise Fail(f"{explain(got)}: {tail(got.text())}")
    with open(made) as f:
        sizes = [len(x) for x in re.findall(r"\nstatic [^;{}]*\([^;{}]*\) \{\n.*?\n\}\n", f.read(), re.S)]
    if max(sizes) > LARGEST:
        raise Fail(f"the largest function has {max(sizes)} bytes of C, expected at most {LARGEST}")
    need("gcc")
    got = run(["sh", "-c", f'ulimit -t {GCC_SECONDS} && exec gcc -std=c99 -O2 -c "$0" -o "$0.o"', made], 120)
    if got.rc:
        raise Fail(f"gcc -O2 needs more than {GCC_SECONDS} s of CPU, or failed: {explain(got)}: {tail(got.text())}")


def tests(env):
    out = [Test(f"vectors/{n}", lambda n=n, b=b: build(env, n, *b), cost=30) for n, b in BUILDS.items()]
    for target in ("avx2", "scalar"):
        out.append(Test(f"vectors/sanitized-{target}", lambda t=target: build(
            env, "sanitized-" + t, t, "gcc", [*SANITIZED, *cpu.flags("avx2" if t == "avx2" else "sse2")], {**os.environ, **SANITIZER}), cost=60))
    out += [Test(f"vectors/{t}-{how}{level}", lambda t=t, how=how, level=level: emulated(env, t, how, level), cost=30)
            for t, how, level in (("neon", "gcc", "-O2"), ("neon-dotprod", "gcc", "-O2"), ("neon-dotprod", "clang", "-O2"), ("neon-i8mm", "gcc", "-O2"), ("armv7-neon", "gcc", "-O2"), ("armv7-neon", "gcc", "-O0"), ("armv7-neon", "clang", "-O2"))]
    for target in ("sse2", "avx512"):
        out.append(Test(f"vectors/legal-{target}", lambda t=target: legal(env, t), cost=5))
    out.append(Test("vectors/forms", lambda: forms(env)))
    out.append(Test("vectors/held", lambda: held(env)))
    out.append(Test("vectors/roots", lambda: roots(env)))
    out.append(Test("vectors/sums", lambda: sums(env)))
    for name, text in (("depthwise", DEPTHWISE), ("partial", PARTIAL)):
        out.append(Test(f"vectors/kernel-size-{name}", lambda n=name, t=text: kernel_size(env, t, n), cost=2))
    return out
