"""PGO builds (ingot build --preset, --lto, --pgo, --bolt, --fast-math) and ingot doctor: every step computes the same bits and
has a row in the report.

Profiles are cached, contradictory options refused.
A broken tool chain gives one clear error, exit code 5, and no file.
"""
import json
import os
import shlex
import shutil

from lib import npy
from lib.core import ROOT, Fail, Skip, Test, explain, run, tail
from suite.play import made

MODEL = os.path.join(ROOT, "models", "digits.onnx")

# A compiler that claims to be clang and lacks llvm-profdata.
CLANG = """#!/bin/sh
case "$*" in
*-print-prog-name*) echo llvm-profdata; exit;;
*--version*) echo "clang version 99"; exit;;
*-E*) echo "ingot clang"; exit;;
esac
exec {cc} "$@"
"""
# A compiler that fails to write objects.
FAILING = """#!/bin/sh
case "$*" in *" -c "*) echo "{cc}: internal error: none today"; exit 4;; esac
exec {cc} "$@"
"""
PERF = """#!/bin/sh
case "$*" in *"-- true"*) exit 0;; esac
kill -9 $$
"""
BOLT = """#!/bin/sh
echo "LLVM version 99"
"""


class Work:
    def __init__(self, env, name):
        env.need_ingot()
        self.env, self.folder = env, env.scratch("pgo", name)
        shutil.rmtree(self.folder)
        self.cache = os.path.join(self.folder, "cache")
        os.makedirs(self.cache, exist_ok=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def script(self, name, text):
        os.makedirs(self.path("bin"), exist_ok=True)
        path = os.path.join(self.path("bin"), name)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, 0o755)
        return path

    def build(self, *args, code=0, has="", env=None, model=(MODEL, "-d", "batch=1")):
        got = run([self.env.ingot, "build", *model, "--quiet", "--seconds", "0.01", *args], 240, cwd=self.folder,
                  env={"XDG_CACHE_HOME": self.cache, **(env or {})})
        text = got.out.decode("utf-8", "replace") + got.text()
        if got.rc != code or got.timed_out or has not in text:
            raise Fail(f"build {' '.join(args)}: {explain(got)}, expected {code} with {has!r}: {tail(text, 20)}")
        return text

    def refused(self, out, *args, code, has, env=None):
        before = sorted(os.listdir(self.folder))
        text = self.build("-o", out, *args, code=code, has=has, env=env)
        if sorted(os.listdir(self.folder)) != before:
            raise Fail(f"{' '.join(args)}: left {sorted(set(os.listdir(self.folder)) - set(before))}")
        return text


def need(program):
    if not shutil.which(program):
        raise Skip(f"{program} is not installed")


def bits(w, program):
    out = w.path("out.npz")
    got = run([program, "--seed", "3", "--output", out], 20)
    if got.rc:
        raise Fail(f"{program}: {explain(got)}: {got.text()}")
    with open(out, "rb") as f:
        return f.read()


def presets(env):
    w = Work(env, "presets")
    text = run([env.ingot, "build", "--presets"], 20).out.decode()
    listed = json.loads(run([env.ingot, "build", "--presets", "--json"], 20).out)
    if [x["name"] for x in listed] != ["balanced", "max", "dev", "size"] or any(x["sets"] not in text for x in listed):
        raise Fail(f"{text}{listed}")
    w.refused("p", "--preset", "maximum", code=2, has="expected one of balanced, max, dev, size")
    said = w.build("--preset", "dev", "--verbose", "-o", "p")
    if "preset dev: -O1" not in said or " -O1 " not in said or " -g " not in said or os.path.exists(w.path("p.baseline")):
        raise Fail(said)
    w.build("--preset", "size", "--name", "n", "-o", "small")  # next to the output of a build without it
    w.build("-O2", "--name", "n", "-o", "plain")
    code = [int(run(["size", w.path(x)], 20).out.split()[6]) for x in ("small", "small.baseline", "plain")]
    if code[1] != code[2] or code[0] >= code[1]:
        raise Fail(f"bytes of code: {code}")


def steps(env, cc):
    """All steps with one compiler: the same bits, a report, a cached profile that is reused."""
    need(cc)
    w = Work(env, "steps-" + cc)
    text = w.build("--cc", cc, "--preset", "max", "--pgo", "-o", "p", has="profile: made")
    rows = [line.split() for line in text.splitlines() if line.startswith("run ")]
    if [r[1] for r in rows] != ["baseline", "-O3", "lto", "pgo"] or not all(float(r[2]) > 0 and int(r[4]) > 1000 for r in rows) or "again: hyperfine" not in text:
        raise Fail(text)
    if "without a profile" not in text:  # a successful run calls neither why nor target
        raise Fail(text)
    if bits(w, w.path("p")) != bits(w, w.path("p.baseline")):
        raise Fail("the PGO build gives other bits")
    if cc != "gcc":
        return
    again = json.loads(w.build("--cc", cc, "--preset", "max", "--pgo", "--json", "-o", "p"))
    if not again["profile"]["kept"] or len(again["steps"]) != 4 or not again["profile"]["without"] or again["profile"]["functions"] <= len(again["profile"]["without"]):
        raise Fail(f"{again}")
    got = run([env.ingot, "build", "--clean"], 20, env={"XDG_CACHE_HOME": w.cache})
    if got.rc or "removed" not in got.text() or os.listdir(os.path.join(w.cache, "ingot")):
        raise Fail(f"--clean: {got.text()}")


def libraries(env):
    w = Work(env, "libraries")
    text = w.build("--lto", "--pgo", "-o", "net.so")
    if "lto" not in text or not os.path.exists(w.path("net.baseline.so")) or not os.path.exists(w.path("net.h")):
        raise Fail(text)
    names = run(["nm", "-D", "--defined-only", w.path("net.so")], 20).out.decode()
    if " net_run" not in names:
        raise Fail(names)
    w.build("--march", "sse2,avx2", "--pgo", "-o", "net.o", has="_sse2")  # variants for other CPUs have no profile, and are built
    if not os.path.exists(w.path("net.baseline.o")):
        raise Fail("no baseline")


def workloads(env):
    w = Work(env, "workloads")
    os.makedirs(w.path("many"))
    import zipfile
    for i in range(2):
        with zipfile.ZipFile(w.path(f"many/{i}.npz"), "w") as z:
            z.writestr("image.npy", npy.encode(npy.Array("f32", (1, 1, 8, 8), [0.25 * i] * 64)))
    w.build("--pgo=many", "--verbose", "-o", "p", has="--inputs many/1.npz")
    with zipfile.ZipFile(w.path("three.npz"), "w") as z:  # examples along the first axis, as quantize reads them
        z.writestr("image.npy", npy.encode(npy.Array("f32", (3, 1, 8, 8), [0.25] * 192)))
    said = w.build("--pgo=three.npz", "--verbose", "-o", "p", has="example-2.npz")
    if "example-3.npz" in said or any("example" in line for line in said.splitlines() if "again: hyperfine" in line):
        raise Fail(said)
    with zipfile.ZipFile(w.path("shape.npz"), "w") as z:
        z.writestr("image.npy", npy.encode(npy.Array("f32", (1, 1, 4, 8), [0.5] * 32)))
    with zipfile.ZipFile(w.path("name.npz"), "w") as z:
        z.writestr("imag.npy", npy.encode(npy.Array("f32", (1, 1, 8, 8), [0.5] * 64)))
    for name, has in (("shape", "--pgo=shape.npz: q: input 'image': the array has shape 1x1x4x8"), ("name", "--pgo=name.npz: q: imag: the model has no such input")):
        said = w.refused("q", f"--pgo={name}.npz", code=4, has=has)
        if "instrumented" in said:
            raise Fail(said)
    said = w.build("--pgo=many/0.npz", "-o", "it's 1", env={"GCOV_PREFIX": w.path("elsewhere"), "LLVM_PROFILE_FILE": w.path("elsewhere")}, has="profile: made")
    words = [shlex.split(x) for x in shlex.split(next(x for x in said.splitlines() if "again: hyperfine" in x).split("again: ")[1])[4:]]
    if [x[0] for x in words] != ["./it's 1.baseline", "./it's 1"] or os.path.exists(w.path("elsewhere")):
        raise Fail(f"{words}: {said}")
    w.refused("q", "--pgo=nothing.npz", code=5, has="no such file")
    w.refused("q", f"--pgo={MODEL}", code=2, has="expected an .npz archive, as numpy.savez writes it, or a folder of them")
    os.makedirs(w.path("empty"))
    w.refused("q", "--pgo=empty", code=4, has="the folder has no .npz files")


def prompts(env):
    """A chat program: prompts from a list, each once; the same answers as the baseline."""
    w, model = Work(env, "prompts"), (made(env),)
    with open(w.path("list.json"), "w") as f:
        json.dump({"one": ["ab", "it's"], "two": [["cd"]]}, f)
    text = w.build("--pgo=list.json", "--verbose", "--context", "128", "-o", "talk", model=model, has="--prompt it's --max-tokens")
    if text.count(" --seed 1 --quiet") != 3 or "decode   pgo" not in text or "prefill  pgo" not in text:
        raise Fail(text)
    said = [run([w.path(name), "-p", "ab", "--max-tokens", "20", "--quiet"], 20) for name in ("talk", "talk.baseline")]
    if said[0].rc or not said[0].out or said[0].out != said[1].out:
        raise Fail(f"{said}")
    with open(w.path("list.json"), "w") as f:
        f.write("[1, 2]")
    w.build("--pgo=list.json", "--context", "128", "-o", "none", model=model, code=4, has="has no prompts")


def refusals(env):
    w = Work(env, "refusals")
    w.refused("x.so", "--bolt", code=3, has="--bolt: expected a program", env={"PATH": os.environ["PATH"]})
    w.refused("x.o", "--backend", "llvm", "--lto", code=3, has="does not use a C compiler")
    w.refused("x.o", "--pgo", "--weights", "pointer", code=3, has="leave out --weights pointer")
    w.refused("x", "--pgo", "--sanitize", "address", code=3, has="exclude each other")
    w.refused("-", "--lto", code=2, has="two files")
    cross = "aarch64-linux-gnu-gcc"
    if shutil.which(cross):
        w.refused("x", "--pgo", "--cc", cross, code=3, has="does not run here")
        w.build("--lto", "--cc", cross, "-o", "elsewhere", has="not measured: code for neon does not run here")
    if shutil.which("tcc"):
        w.refused("x", "--pgo", "--cc", "tcc", code=3, has="needs gcc or clang")


def broken(env):
    need("gcc")
    w = Work(env, "broken")
    gcc = shutil.which("gcc")
    w.refused("x", "--pgo", "--cc", "/nonexistent/cc", code=5, has="cannot be started")
    w.refused("x", "--pgo", "--cc", w.script("failing", FAILING.format(cc=gcc)), code=5, has="none today")
    only = {"PATH": w.path("bin")}
    w.refused("x", "--pgo", "--cc", w.script("clang", CLANG.format(cc=gcc)), code=5, has="package llvm", env=only)
    w.refused("x", "--bolt", "--cc", gcc, code=5, has="package bolt-16", env=only)
    for name, text in (("perf", PERF), ("llvm-bolt", BOLT), ("perf2bolt", BOLT)):
        w.script(name, text)
    w.refused("x", "--bolt", "--cc", gcc, code=5, has="perf' was ended by signal 9", env={"PATH": w.path("bin") + ":" + os.environ["PATH"]})
    w.refused("/proc/x", "--pgo", code=5, has="/proc/x")
    w.refused("x", "--pgo", "--cc", gcc, code=5, has="/proc/nothing", env={"XDG_CACHE_HOME": "/proc/nothing", "TMPDIR": "/proc/nothing"})


def bolt(env):
    if not any(shutil.which(x) for x in ("llvm-bolt", *(f"llvm-bolt-{v}" for v in range(11, 26)))):
        raise Skip("llvm-bolt is not installed: package bolt-16")
    w = Work(env, "bolt")
    w.build("--bolt", "-o", "p", has="run      bolt")
    if bits(w, w.path("p")) != bits(w, w.path("p.baseline")):
        raise Fail("the program that was laid out anew gives other bits")


def foreign(env):
    """The cached profile of another build is not used."""
    w = Work(env, "foreign")
    w.build("--pgo", "-o", "a")
    kept = sorted(os.listdir(os.path.join(w.cache, "ingot")))
    head = os.path.join(w.cache, "ingot", kept[0])
    with open(head) as f:
        text = f.read()
    for spoilt in (text.replace(kept[0][4:36], "0" * 32), ""):
        with open(head, "w") as f:
            f.write(spoilt)
        w.refused("c", "--pgo", "--name", "a", code=5, has="the profile of another build")
    with open(head, "w") as f:
        f.write("planted")
    os.chmod(head, 0o666)
    w.build("--pgo", "-o", "a")  # created again
    with open(head) as f:
        if f.read().split()[:4] != text.split()[:4] or os.stat(head).st_mode & 0o777 != 0o600:
            raise Fail("a profile that others can write to is used")
    with open(os.path.join(w.cache, "ingot", kept[1]), "wb") as f:
        f.write(b"no profile")
    w.refused("c", "--pgo", "--name", "a", code=5, has="profile")


def fast_math(env, cc):
    """--fast-math keeps exp accurate: its rounding to an integer is hidden from the compiler."""
    need(cc)
    w = Work(env, "fast_math-" + cc)
    w.build("--cc", cc, "--march", "scalar", "--fast-math", "-o", "p", has="fast-math: output probability differs")
    w.build("--cc", cc, "--march", "sse2", "--fast-math", "--lto", "-o", "p.so", has="fast-math: output probability differs")


def features(env):
    w = Work(env, "features")
    said = w.build("--march", "x86-64-v3,-avx2", "--verbose", "-o", "p.o")
    if " -march=x86-64-v3 -mno-avx2 " not in said:
        raise Fail(said)
    with open(w.path("p.h")) as f:
        if 'NAME_TARGET "sse2"'.replace("NAME", "P") not in f.read():
            raise Fail("code for x86-64-v3 without avx2 is not that for sse2")
    for march, target in (("+avx2,+fma,+f16c", "avx2"), ("+avx2,+fma,+bmi2,+popcnt,+lzcnt", "avx2"), ("skylake", "avx2"), ("x86-64-v3", "avx2"), ("znver4", "avx512")):
        w.build("--march", march, "-o", "p.o")  # znver4 also for compilers that do not know it
        with open(w.path("p.h")) as f:
            if f'P_TARGET "{target}"' not in f.read():
                raise Fail(f"{march} is not {target}")
    got = run([env.ingot, "build", MODEL, "-d", "batch=1", "--march", "+avx2", "-o", w.path("p.o")], 60)
    if got.rc or "need avx2,fma,f16c together" not in got.text():
        raise Fail(f"{explain(got)}: {got.text()}")
    w.build("--march", "+nonsense", "-o", "p.o", code=2, has="or one of the features")
    w.build("--march", "+avx2,x86-64-v3", "-o", "p.o", code=2, has="expected a CPU and features")


def doctor(env):
    w = Work(env, "doctor")
    got = json.loads(run([env.ingot, "doctor", "--json"], 60).out)
    if not got["cpu"] or not got["native"] or got["measured"][0]["f32_gflops"] <= 0 or got["measured"][0]["read_gb_per_s"] <= 0:
        raise Fail(f"{got}")
    cc = [x for x in got["compilers"] if x["name"] == "cc"]
    if not cc or not cc[0]["version"]:
        raise Fail(f"{got['compilers']}")
    w.script("cc", "#!/bin/sh\nexit 3\n")
    bare = run([env.ingot, "doctor"], 60, env={"PATH": w.path("bin"), "CC": ""})
    text = bare.out.decode()
    if bare.rc or "does not work" not in text or "not found: package bolt-16" not in text or "not measured" not in text or "GB/s" not in text:
        raise Fail(f"{explain(bare)}: {text}{bare.text()}")


def tests(env):
    return [Test("pgo/presets", lambda: presets(env), cost=2), Test("pgo/gcc", lambda: steps(env, "gcc"), cost=15),
            Test("pgo/clang", lambda: steps(env, "clang"), cost=15), Test("pgo/libraries", lambda: libraries(env), cost=12),
            Test("pgo/workloads", lambda: workloads(env), cost=8), Test("pgo/prompts", lambda: prompts(env), cost=8), Test("pgo/refusals", lambda: refusals(env), cost=2),
            Test("pgo/bolt", lambda: bolt(env), cost=3), Test("pgo/broken", lambda: broken(env), cost=8), Test("pgo/foreign", lambda: foreign(env), cost=12),
            Test("pgo/fast_math-gcc", lambda: fast_math(env, "gcc"), cost=3), Test("pgo/fast_math-clang", lambda: fast_math(env, "clang"), cost=3),
            Test("pgo/features", lambda: features(env), cost=3), Test("pgo/doctor", lambda: doctor(env), cost=5)]
