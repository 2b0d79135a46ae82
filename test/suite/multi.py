"""One file with several variants (--march=multi): no warnings without flags, and the promises of any other file.

Each variant, selected by -DNAME_BODY, gives the bytes of `--march` for its target alone, for any weights, threads and state.
A compiler without GNU vectors compiles the first variant as loops.
"""
import os
import re

from lib import cfile, cpu, npy
from lib.core import ROOT, Fail, Test, explain, must, need, run, tail
from suite import bytes as quantized
from suite import promises, targets

DIGITS = [os.path.join(ROOT, "models", "digits.onnx"), "-d", "batch=1"]
BODIES = {"sse2": "sse2", "avx2": "avx2", "avx512": "avx512", "avxvnni": "avx2", "avx512vnni": "avx512"}
STRICT = ["-Wconversion", "-Wno-sign-conversion", "-Wshadow", "-Wcast-qual", "-Wundef", "-Wstrict-prototypes", "-Wmissing-prototypes"]


def net(env, name):
    return [targets.prepare(env, name)[0]]


def quantized_net(env):
    return [os.path.join(quantized.folder_of(env), "windows3.onnx")]


MODELS = {  # model, options, compiler, variants
    "mobile": (lambda env: net(env, "mobile21"), ["--weights", "text"], "clang", ("sse2", "avx2", "avx512")),
    "attention": (lambda env: net(env, "attention"), ["--weights", "file", "--threads", "2", "--threads-grain", "1"], "gcc", ("avx2",)),
    "openmp": (lambda env: DIGITS, ["--threads", "2", "--threads-grain", "1", "--threads-api", "openmp"], "gcc", ("avx512",)),
    "bytes": (quantized_net, [], "gcc", ("avx2", "avx512vnni")),
    "debug": (lambda env: DIGITS, ["--debug", "--precise"], "clang", ("sse2",)),
}


def bodies(env, name):
    """Each variant compared with `run --march` for its target."""
    find, options, cc, some = MODELS[name]
    compare(env, name, find(env), options, cc, [b for b in some if cpu.can_run(b)])


def instruction(env, body):
    """On CPUs with int8 dot products: quantized networks of all families."""
    cpu.need(body)
    for net in ("pointwise27", "pointwise-signed", "windows32", "matmul-row", "qgemm", "convinteger"):
        compare(env, f"{body}-{net}", [os.path.join(quantized.folder_of(env), net + ".onnx")], [], "gcc", [body])


def compare(env, name, model, options, cc, some):
    env.need_ingot()
    need(cc)
    work = env.scratch("multi", name)
    text = " ".join(o for o in options if o != "--debug")
    plain = re.sub(r"--(weights|threads\S*) \S+ ?", "", text).split()  # how to write the C; interp runs on one thread
    for body in some:
        made, out, alone = (os.path.join(work, body + x) for x in ("", ".npz", "-alone.npz"))
        must([env.ingot, "build", *model, *options, "--march", "multi", "--quiet", "--no-selftest", "--name", "net", "--cc", f"{cc} -DNET_BODY={body}", "-o",
              made], f"build, {body}")
        must([made, "--seed", "5", "--output", out], body)
        must([env.ingot, "run", *model, *plain, "--engine", "interp", "--quiet", "--seed", "5", "--march", BODIES[body],
              "--output", alone], f"run --march {BODIES[body]}")
        if npy.load_npz_raw(out) != npy.load_npz_raw(alone):
            raise Fail(f"the body {body} gives other bytes than --march={BODIES[body]}")


def chosen(env):
    """Without -D: the variant for this CPU; engines agree, and the library reports its target."""
    env.need_ingot()
    work = env.scratch("multi", "chosen")
    best = [b for b in ("sse2", "avx2", "avx512") if cpu.can_run(b)][-1]
    found = {}
    must([env.ingot, "build", *DIGITS, "--march", "multi", "--caller", "--quiet", "-o", os.path.join(work, "net.so")], "build")
    for what, args in (("interp", ["--march", "multi"]), ("c", ["--march", "multi", "--engine", "c"]), ("alone", ["--march", best]),
                       ("library", ["--march", "multi", "--engine", "c", "--library", os.path.join(work, "net.so"), "--name", "net"])):
        out = os.path.join(work, what + ".npz")
        must([env.ingot, "run", *DIGITS, *args, "--quiet", "--seed", "5", "--output", out], what)
        found[what] = npy.load_npz_raw(out)
    bad = [what for what in found if found[what] != found["alone"]]
    if bad:
        raise Fail(f"{', '.join(bad)}: other bytes than --march={best}")
    refused = {("opt", "--march", "multi"): "is a list of targets, expected one", ("inspect", "--march", "avx2,sse2"): "is a list of targets, expected one",
               ("compile", "--march", "avx2,sse9"): "unknown target 'sse9'", ("verify", "--per-node", "--march", "multi"): "is a list of targets, expected one"}
    for (verb, *args), text in refused.items():
        got = run([env.ingot, verb, *DIGITS, *args], 60)
        if got.rc != 2 or text not in got.text():
            raise Fail(f"{verb} {args}: {explain(got)}: {tail(got.text(), 4)}")


CELL = """graph cell (%1 "x": f32[2,40], %2 "h": f32[2,40]) {
  %3: f32[40,40] = iota {shape=[40,40], axis=0, to=f32}
  %4: f32[40,40] = iota {shape=[40,40], axis=1, to=f32}
  %5: f32[40,40] = mul(%3, %4)
  %6: f32[40,40] = sin(%5)
  %7: f32[2,40] = contract(%2, %6) {spec="mk,kn->mn"}
  %8: f32[2,40] = add(%1, %7)
  %9: f32[2,40] = tanh(%8)
  %10: f32[2,40] = contract(%9, %6) {spec="mk,nk->mn"}
  return %10 "y", %9 "hn" next %2
}
"""


def kept(env):
    """State has the same offsets in all variants: the steps of each equal those of its target alone."""
    env.need_ingot()
    work = env.scratch("multi", "state")
    model = os.path.join(work, "cell.ing")
    with open(model, "w") as f:
        f.write(CELL)
    places = set()
    for body in [b for b in ("sse2", "avx2", "avx512") if cpu.can_run(b)]:
        made, out, alone = (os.path.join(work, body + x) for x in ("", ".npz", "-alone.npz"))
        must([env.ingot, "build", model, "--march", "multi", "--quiet", "--name", "net", "--cc", f"gcc -DNET_BODY={body}", "-o", made], body)
        must([made, "--steps", "12", "--seed", "5", "--output", out], body)
        must([env.ingot, "run", model, "--quiet", "--march", body, "--steps", "12", "--seed", "5", "--output", alone], "run")
        if npy.load_npz_raw(out) != npy.load_npz_raw(alone):
            raise Fail(f"the body {body} differs from --march={body} after 12 steps")
        text = must([env.ingot, "opt", model, "--quiet", "--march", body], "opt")
        places.add(tuple(re.findall(r"^buf (.*: state .*)$", text, re.M)))
    if len(places) != 1 or "at 0" not in str(places):
        raise Fail(f"the state lies at {places}")


def keeps_promises(env):
    """Compilers without flags or vectors: no warnings, no static data, no heap, bounded stack, a passing self-test."""
    folder = env.scratch("multi", "promises")
    models = []
    for i, args in enumerate((DIGITS, quantized_net(env), [*net(env, "mobile21"), "--weights", "text"])):
        m = promises.Model(f"m{i}", os.path.basename(args[0]), [*args, "--march", "multi", "--selftest"])
        env.need_ingot()
        m.source, m.header = promises.emit(env, m.args, m.name, folder)
        promises.check_origin(m, folder)
        models.append(m)
    text = models[0].source
    weights = re.findall(r"^static const (\w+) w\d+(\[.*?;)$", text, re.M | re.S)
    if len(weights) < 4 or len(weights) != len(set(weights)) or text.count("---- variant ") != 3:
        raise Fail("weights are not written once, or bodies are missing")
    for name in ("ig_m", "IG", "Im_m", "imk_x", "__AVX2_m"):  # names of the runtime, which variants rename
        got = run([env.ingot, "compile", *DIGITS, "--march", "multi", "--name", name], 60)
        if got.rc != 2 or "are reserved" not in got.text():
            raise Fail(f"--name {name}: {explain(got)}: {tail(got.text(), 4)}")
    for compiler, flags in (("gcc", ["-O2", *STRICT]), ("clang", ["-O1"]), ("gcc", ["-O0", "-DINGOT_PORTABLE"]), ("tcc", [])):
        need(compiler)
        libs = ("__cpu_", "_GLOBAL_OFFSET", *(("__float", "__fix") if compiler == "tcc" else ()))

        def check(m):
            out = promises.compile_one(m, compiler, flags, folder, folder)
            promises.check_object(m, compiler, folder, out, extra=libs)
        promises.each(models, check)
        promises.link_and_run([compiler], folder, models, folder)
    cross = "aarch64-linux-gnu-gcc"
    if promises.shutil.which(cross) and promises.shutil.which("qemu-aarch64"):
        promises.each(models[:2], lambda m: promises.compile_one(m, cross, ["-O1"], folder, folder))
        program = os.path.join(folder, "arm")
        cfile.cc([cross, "-static", "-I", folder, "-o", program, promises.driver(folder, models[:2], False),
                  *[os.path.join(folder, m.name + ".o") for m in models[:2]]], "linking")
        must(["qemu-aarch64", program], "another processor")


def tests(env):
    return [*[Test(f"multi/{n}", lambda n=n: bodies(env, n), cost=15) for n in MODELS], *[Test(f"multi/{b}", lambda b=b: instruction(env, b), cost=20) for b in ("avxvnni", "avx512vnni")], Test("multi/chosen", lambda: chosen(env), cost=10),
            Test("multi/state", lambda: kept(env), cost=15), Test("multi/promises", lambda: keeps_promises(env), cost=30)]
