"""The functions of src/ir/math/mathlib*.h as generated files contain them: each compiles alone without a warning or an undefined
symbol.

All give the same bits with every installed compiler, optimization level and instruction set.
"""
import os
import shutil
from lib import cfile, cpu
from lib.core import ROOT, Fail, Skip, Test, run, tail

ONE = ("exp exp_p1 exp_nonpos log sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh gelu_x2 erf floor ceil trunc rint sqrt").split()
TWO = "pow fmod mod".split()
THREE = ["fma"]
QUICK = ("exp_p1q exp_p1u exp_nonposq exp_nonposu expq logq sinq cosq tanhq gelu_x2q erfq expu tanhu gelu_x2u erfu "  # of programs with `math fast`, `fused`
         "exps tanhs gelu_x2s erfs sins coss").split()  # of programs with `math single`
LOOPS = "exps tanhs gelu_x2s erfs".split()  # loops over these become vectors: at least as fast as those in double
WARN = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-ffp-contract=off"]
BUILDS = {
    "gcc-O0": ["gcc", *WARN, "-O0"],
    "gcc-O2": ["gcc", *WARN, "-O2"],
    "gcc-O3": ["gcc", *WARN, "-O3"],
    "gcc-fma": ["gcc", *WARN, "-O3", "-mavx2", "-mfma"],
    "gcc-fma-O0": ["gcc", *WARN, "-O0", "-mavx2", "-mfma"],
    "clang-O0": ["clang", *WARN, "-O0"],
    "clang-O3": ["clang", *WARN, "-O3"],
    "clang-fma": ["clang", *WARN, "-O2", "-mavx2", "-mfma"],
    "clang-fma-O0": ["clang", *WARN, "-O0", "-mavx2", "-mfma"],
    "soft": ["gcc", *WARN, "-O2", "-U__SSE2_MATH__"],  # the code paths without a known instruction
    "ubsan": ["clang", *WARN, "-O1", "-fsanitize=undefined,float-cast-overflow", "-fno-sanitize-recover=all"],
    "tcc": ["tcc", "-std=c99", "-Wall", "-Werror"],
    "aarch64": ["aarch64-linux-gnu-gcc", *WARN, "-O2", "-static"],
    "ppc64": ["powerpc64-linux-gnu-gcc", *WARN, "-O2", "-static"],
}
EMULATOR = {"aarch64": ["qemu-aarch64"], "ppc64": ["qemu-ppc64"]}  # the second one is big-endian

ALONE = ["gcc-O0", "gcc-O3", "gcc-fma-O0", "clang-O0", "clang-fma", "soft", "tcc"]


def text(names):
    program = os.path.join(ROOT, "build", "unit", "math_text")
    if not os.path.exists(program):
        raise Skip("build/unit is not built")
    got = run([program, *names], 20)
    if got.rc:
        raise Fail(tail(got.text()))
    return "#include <stdint.h>\n" + got.out.decode()


def is_single(name):
    return name in QUICK or (name.endswith("f") and name != "erf")


def signature(name, count):
    """A function f_name that calls im_name, in its type."""
    kind = "float" if is_single(name) else "double"
    names = "xyz"[:count]
    params, args = ", ".join(f"{kind} {v}" for v in names), ", ".join(names)
    return f"{kind} f_{name}({params});\n{kind} f_{name}({params}) {{\n  return im_{name}({args});\n}}\n"


def functions():
    for count, names in ((1, ONE), (2, TWO), (3, THREE)):
        for name in names:
            yield name, count
            yield name + "f", count
    for name in QUICK:
        yield name, 1


def alone(env, build):
    """Each function in a separate file."""
    command = BUILDS[build]
    if not shutil.which(command[0]):
        raise Skip(f"{command[0]} is not installed")
    folder, wrong = env.scratch("math", build), []
    for name, count in functions():
        path = os.path.join(folder, name + ".c")
        with open(path, "w") as f:
            f.write(text([name]) + signature(name, count))
        got = run([*command, "-c", path, "-o", path[:-1] + "o"], 60, merge=True)
        if got.rc:
            raise Fail(f"{name}: {tail(got.out.decode())}")
        symbols = run(["nm", "-u", path[:-1] + "o"], 20).out.decode().split()
        wrong += [f"{name}: {s}" for s in symbols if s not in {"U", "_GLOBAL_OFFSET_TABLE_"} | cfile.HARDENED]
    if wrong:
        raise Fail("undefined symbols: " + "; ".join(wrong))


DRIVER = """
#include <stdio.h>
#include <string.h>
static uint64_t state = 88172645463325252u;
static uint64_t draw(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state * 0x2545f4914f6cdd1d;
}
static uint64_t mix(uint64_t h, uint64_t bits) { return (h ^ bits) * 0x9e3779b97f4a7c15 + (h >> 29); }
/* half of them any bits, half near the numbers people use */
static double pick(void) {
  uint64_t u = draw();
  double x;
  if (u & 1) u = (u & 0x800fffffffffffff) | (uint64_t)(0x3e0 + (u >> 52 & 0x3f)) << 52;
  memcpy(&x, &u, sizeof x);
  return x;
}
static float pickf(void) {
  uint32_t u = (uint32_t)(draw() >> 32);
  float x;
  if (u & 1) u = (u & 0x807fffff) | (0x6c + (u >> 23 & 0x1f)) << 23;
  memcpy(&x, &u, sizeof x);
  return x;
}
"""


def driver():
    out = [text([name for name, _ in functions()]), DRIVER, "int main(void) {\n  int i;\n"]
    for name, count in functions():
        single = is_single(name)
        kind, word, pick, nan = ("float", "uint32_t", "pickf()", "0x7fc00000") if single else \
            ("double", "uint64_t", "pick()", "0x7ff8000000000000")
        args = ", ".join("xyz"[:count])
        out.append(f"""  {{
    uint64_t h = 0;
    for (i = 0; i < 20000; i++) {{
      {kind} {', '.join(f'{v} = {pick}' for v in 'xyz'[:count])}, r = im_{name}({args});
      {word} u;
      memcpy(&u, &r, sizeof u);
      h = mix(h, r != r ? {nan} : u);
    }}
    printf("{name} %08lx%08lx\\n", (unsigned long)(h >> 32), (unsigned long)(h & 0xffffffff));
  }}
""")
    return "".join(out) + "  return 0;\n}\n"


def bits(env, build):
    """One hash per function over arguments of all sizes, the same for every build; all NaN are equal."""
    command, emulator = BUILDS[build], EMULATOR.get(build, [])
    for tool in [command[0], *emulator]:
        if not shutil.which(tool):
            raise Skip(f"{tool} is not installed")
    if "-mfma" in command:
        cpu.need("avx2")
    folder = env.scratch("math", build)
    path = os.path.join(folder, "driver.c")
    with open(path, "w") as f:
        f.write(env.once("math driver", driver))
    got = run([*command, path, "-o", path[:-2]], 120, merge=True)
    if got.rc:
        raise Fail(tail(got.out.decode()))
    got = run([*emulator, path[:-2]], 120, merge=True)
    if got.rc:
        raise Fail(tail(got.out.decode()))
    mine = got.out.decode().splitlines()
    if build != "gcc-O2":
        want = env.once("math gcc-O2", lambda: bits(env, "gcc-O2"))
        other = [a.split()[0] for a, b in zip(mine, want) if a != b]
        if other or len(mine) != len(want):
            raise Fail("bits differ from gcc -O2: " + " ".join(other))
    return mine


def vectors(env):
    """gcc vectorizes loops over the functions of `math single`."""
    if not shutil.which("gcc") or run(["gcc", "-dumpmachine"], 20).out.decode().split("-")[0] not in ("x86_64", "aarch64"):
        raise Skip("gcc is not installed, or for another machine")
    path = os.path.join(env.scratch("math", "vectors"), "loops.c")
    with open(path, "w") as f:
        f.write(text(LOOPS))
        for name in LOOPS:
            f.write(f"void v_{name}(float *restrict y, const float *restrict x) {{\n"
                    f"  for (int i = 0; i < 1024; i++) y[i] = im_{name}(x[i]);\n}}\n")
    got = run(["gcc", *WARN[:1], "-ffp-contract=off", "-O3", "-fopt-info-vec-optimized", "-c", path, "-o", path[:-1] + "o"], 60, merge=True)
    found = got.out.decode().count("loop vectorized")
    if got.rc or found < len(LOOPS):
        raise Fail(f"{found} of {len(LOOPS)} loops became vectors: {tail(got.out.decode())}")


def tests(env):
    out = [Test(f"math/bits-{b}", lambda b=b: bits(env, b), cost=3) for b in BUILDS]
    out.append(Test("math/vectors", lambda: vectors(env)))
    return out + [Test(f"math/alone-{b}", lambda b=b: alone(env, b), cost=8) for b in ALONE]
