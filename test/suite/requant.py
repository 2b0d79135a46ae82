"""Language models quantized to GGUF: types, keys and bytes compared with the gguf package (test/make/mkquant.py); safetensors
folders as GGUF, with their logits and tokens.

A refused conversion leaves no file.
"""
import json
import os
import shutil
from lib import npy
from lib.core import ROOT, Fail, Test, explain, run, tail, want

LIMIT = 120
SIMPLE = ("F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0")
MIXED = ("Q2_K", "Q3_K_S", "Q3_K_M", "Q3_K_L", "Q4_K_S", "Q4_K_M", "Q5_K_S", "Q5_K_M", "Q6_K")


def ingot(env, *args, rc=0):
    got = run([env.need_ingot(), *args], LIMIT)
    if got.rc != rc or got.timed_out:
        raise Fail(f"{args[0]}: {explain(got)}: {tail(got.text() + got.out.decode(), 4)}")
    return got


def files(env):
    out = os.path.join(env.build, "requant")

    def make():
        shutil.rmtree(out, ignore_errors=True)
        os.makedirs(out, exist_ok=True)
        env.lm_script("mkquant.py", "make", out)
    env.generated(out, ["make/mkquant.py"], make)
    return out


def mixtures(env, names):
    folder, out, pairs = files(env), env.scratch("requant", names[0]), []
    source = os.path.join(folder, "wide.gguf")
    for name in names:
        path = os.path.join(out, name + ".gguf")
        ingot(env, "quantize", source, "--type", name, "-o", path)
        pairs += [path, name]
    wrong = env.lm_script("mkquant.py", "check", source, *pairs)
    want(not wrong, wrong)


def parts(env):
    """Several files in, one file out."""
    folder, out = files(env), env.scratch("requant", "parts")
    first = sorted(n for n in os.listdir(folder) if n.startswith("parts"))[0]
    path = os.path.join(out, "whole.gguf")
    ingot(env, "quantize", os.path.join(folder, first), "--type", "Q8_0", "-o", path)
    wrong = env.lm_script("mkquant.py", "check", os.path.join(folder, "wide.gguf"), path, "Q8_0")
    want(not wrong, wrong)


def table(env):
    """The table adds up; --exclude leaves tensors as they are; a file quantized to its own types stays the same."""
    folder, out = files(env), env.scratch("requant", "table")
    source, path, again = os.path.join(folder, "wide.gguf"), os.path.join(out, "q.gguf"), os.path.join(out, "again.gguf")
    got = json.loads(ingot(env, "quantize", source, "--type", "Q4_K_M", "--exclude", "blk.?.ffn_*", "--exclude", "output.weight", "-o", path, "--json").out)
    rows = {r["name"]: r for r in got["layers"]}
    for name, r in rows.items():
        kept = ".ffn_" in name or name in ("output.weight", "output_norm.weight", "blk.0.attn_norm.weight", "blk.0.attn_q.bias")
        want(r["kept"] == kept and (r["op"] == "F32" or not kept), f"{name}: {r}")
        want(kept == (r["bytes"] == r["bytes_before"]), f"{name}: {r}")
        want(kept or 20 < r["sqnr_db"] < 80, f"{name}: {r}")
    want(got["bytes"] == sum(r["bytes"] for r in rows.values()), "bytes do not add up")
    want(os.path.getsize(path) - got["bytes"] < 16384, "the file is larger than its tensors and keys")
    said = ingot(env, "quantize", path, "--type", "Q4_K_M", "--exclude", "*", "-o", again).text()
    want(open(path, "rb").read() == open(again, "rb").read() and "already" not in said, "all kept, and the file is another")
    said = ingot(env, "quantize", path, "--type", "Q4_0", "-o", again).text()
    want("already" in said, f"Q4_K to Q4_0 without a warning: {said}")


# name, arguments after the verb ({} the folder of files, OUT an output file), exit code, message
REFUSED = (
    ("type", "{}/wide.gguf --type Q4_K_X -o OUT/no.gguf", 2, "did you mean 'Q4_K_"),
    ("no-type", "{}/wide.gguf -o OUT/no.gguf", 2, "--type"),
    ("method", "{}/wide.gguf --type Q8_0 --method static -o OUT/no.gguf", 2, "--method"),
    ("keep", "{}/wide.gguf --type Q8_0 --exclude blk.9.* -o OUT/no.gguf", 2, "blk.9.*"),
    ("nan", "{}/nan.gguf --type Q4_K_M -o OUT/no.gguf", 4, "'blk.3.ffn_up.weight' holds nan"),
    ("nan-simple", "{}/nan.gguf --type Q8_0 -o OUT/no.gguf", 4, "'blk.3.ffn_up.weight' holds nan"),
    ("large", "{}/large.gguf --type F16 -o OUT/no.gguf", 4, "1e+09, which F16 cannot represent"),
    ("large-blocks", "{}/large.gguf --type Q4_0 -o OUT/no.gguf", 4, "which Q4_0 cannot represent"),
    ("self", "{}/wide.gguf --type Q8_0 -o {}/wide.gguf", 2, "wide.gguf"),
    ("folder", "{}/wide.gguf --type Q8_0 -o OUT", 5, "directory"),
    ("nowhere", "{}/wide.gguf --type Q8_0 -o {}/wide.gguf/none/no.gguf", 5, "wide.gguf/none"),
    ("full", "{}/wide.gguf --type Q8_0 -o /dev/full", 5, "No space left"),
    ("short", "SHORT --type Q8_0 -o OUT/no.gguf", 4, "bytes"),
    ("onnx", ROOT + "/models/digits.onnx --type Q8_0 -o OUT/no.onnx", 2, "--type is for language models"),
)


def refused(env, row):
    name, text, code, says = row
    folder, out = files(env), env.scratch("requant", "refused", name)
    wide, short = os.path.join(folder, "wide.gguf"), os.path.join(env.scratch("requant", "short"), "short.gguf")
    if "SHORT" in text:
        with open(wide, "rb") as f, open(short, "wb") as t:
            t.write(f.read(1 << 20))
    before = os.stat(wide).st_mtime_ns
    words = [w.replace("{}", folder).replace("OUT", out).replace("SHORT", short) for w in text.split()]
    got = ingot(env, "quantize", *words, rc=code)
    want(says in got.text(), f"'{says}' is not in: {tail(got.text(), 3)}")
    want(not os.listdir(out) and os.stat(wide).st_mtime_ns == before, f"it has left {os.listdir(out)}")


# ---- folders ----

def decoders(env):
    from suite.decoders import load
    return load(env)


def folder_case(env, name):
    """A folder as GGUF has the logits of the folder, and the keys and tensors of the GGUF file of the same model."""
    from suite.decoders import NEAR
    folder, _ = decoders(env)
    out = os.path.join(env.scratch("requant", name), name + ".gguf")
    got = ingot(env, "quantize", os.path.join(folder, name), "--type", "F32", "-o", out)
    want("no tokenizer" in got.text(), "a folder without a tokenizer, and no word of it")
    expected = npy.decode(npy.load_npz_raw(os.path.join(folder, name + ".npz"))["logits"])
    ids = npy.decode(npy.load_npz_raw(os.path.join(folder, name + ".npz"))["ids"])
    y = os.path.join(os.path.dirname(out), "y.npz")
    ingot(env, "run", out, "--input", "ids=[" + ",".join(str(i) for i in ids.data) + "]", "--every-token", "--context", "96", "--cache", "f32", "--output", y, "--quiet")
    have = npy.decode(npy.load_npz_raw(y)["logits"])
    far = max(abs(a - b) for a, b in zip(have.data, expected.data))
    want(tuple(have.shape) == tuple(expected.shape) and far <= NEAR and not any(a != a for a in have.data), f"logits are off by {far:.3g}")


# kinds of test/make/mktokens.py; can GGUF represent them?
TOKENIZERS = {"gpt2": 0, "llama3": 0, "qwen2": 0, "smollm": 0, "gpt4o": 0, "added": 3, "spm-bpe": 0, "spm-user": 0, "gpt2-prefix": 3, "llama2": 3, "unigram": 3, "bert": 3,
              "spm-unigram": 3}
TEXTS = ("", " Hello  world", "don't 1234567 x", "naïve 北京 \U0001f642\n\n  x", "HELLO\tWorld's <s> <|end|>")


def verified(env, path):
    """Engines agree on quantized weights with int8 activations, and on floats."""
    for how in ([], ["--precise"]):
        rows = json.loads(ingot(env, "verify", path, "--input", "ids=[1,2,3,4,5]", "--engine", "interp", "--json", *how).out)["rows"]
        want(rows and rows[0]["output"]["max_abs"] < 1e-3, f"{how}: {rows}")


def tokenizers(env):
    """A folder and its GGUF file give the same ids; a tokenizer that GGUF cannot represent is refused."""
    from suite.tokens import cases
    made, table = cases(env)
    out, words = env.scratch("requant", "tokens"), []
    for kind in TOKENIZERS:
        path = os.path.join(made, table[kind]["file"])
        most = max((i for row in table[kind]["rows"] for i in row[1]), default=0)
        if path.endswith(".json"):
            with open(path) as f:
                t = json.load(f)
            vocab = t["model"]["vocab"]
            most = max([most, len(vocab) - 1, *(vocab.values() if isinstance(vocab, dict) else []), *(a["id"] for a in t["added_tokens"])])
        else:
            most += 1000  # rows without a token
        os.makedirs(os.path.join(out, kind), exist_ok=True)
        words += [os.path.join(out, kind), str(max(most + 3, 4096 if kind == "smollm" else 0)), path]
    env.lm_script("mkquant.py", "folder", *words)
    for kind, rc in TOKENIZERS.items():
        folder = os.path.join(out, kind)
        got = ingot(env, "quantize", folder, "--type", "Q8_0", "-o", folder + ".gguf", rc=rc)
        if rc:
            want("the tokenizer" in got.text() and not os.path.exists(folder + ".gguf"), f"{kind}: {tail(got.text())}")
            continue
        if kind == "smollm":
            verified(env, folder + ".gguf")
        for text in TEXTS:
            for how in ([], ["--special"]) if text == TEXTS[-1] else ([],):
                a, b = (ingot(env, "tokenize", path, "--text", text, *how).out for path in (folder, folder + ".gguf"))
                want(a == b, f"{kind}, {text!r}: {a} in the folder, {b} in the file")


def broken_folder(env):
    """A folder with malformed files leaves no output: empty tensors, unknown names, shapes without heads, other scalings."""
    folder, _ = decoders(env)
    base, out = os.path.join(folder, "llama"), env.scratch("requant", "broken")
    with open(os.path.join(base, "model.safetensors"), "rb") as f:
        raw = f.read()
    n = int.from_bytes(raw[:8], "little")
    head, data = json.loads(raw[8:8 + n]), raw[8 + n:]
    q, norm = "model.layers.0.self_attn.q_proj.weight", "model.norm.weight"

    def write(change, config):
        h = json.loads(json.dumps(head))
        change(h)
        text = json.dumps(h).encode()
        with open(os.path.join(out, "model.safetensors"), "wb") as f:
            f.write(len(text).to_bytes(8, "little") + text + data)
        with open(os.path.join(base, "config.json")) as f:
            c = json.load(f)
        with open(os.path.join(out, "config.json"), "w") as f:
            json.dump({**c, **config}, f)

    def empty(h):
        h["model.layers.0.mlp.gate_proj.bias"] = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}

    def scalar(h):
        h["model.layers.0.mlp.up_proj.bias"] = {"dtype": "F32", "shape": [0, 1, 1, 1, 1], "data_offsets": [0, 0]}

    def strange(h):
        h["model.layers.0.strange.weight"] = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}

    def turned(h):
        h[q]["shape"] = [h[q]["shape"][0] * h[q]["shape"][1]]

    def missing(h):
        h["model.other"] = h.pop(norm)
    cases = ((empty, {}, 4, "is empty"), (scalar, {}, 4, "is empty"), (strange, {}, 3, "no name in GGUF"), (turned, {}, 4, "the rows of 4 heads"), (missing, {}, 3, "no name in GGUF"),
             (lambda h: None, {"hidden_act": "gelu"}, 3, "activation"), (lambda h: None, {"model_type": "gpt9"}, 3, "gpt9"),
             (lambda h: None, {"quantization_config": {"quant_method": "gptq"}}, 3, "already quantized"))
    for change, config, code, says in cases:
        write(change, config)
        got = ingot(env, "quantize", out, "--type", "Q8_0", "-o", os.path.join(out, "no.gguf"), rc=code)
        want(says in got.text(), f"'{says}' is not in: {tail(got.text(), 3)}")
        want(sorted(os.listdir(out)) == ["config.json", "model.safetensors"], f"{says}: it has left {os.listdir(out)}")


def tests(env):
    return [Test("requant/simple", lambda: mixtures(env, SIMPLE), 3),
            Test("requant/mixed", lambda: mixtures(env, MIXED), 4),
            Test("requant/parts", lambda: parts(env), 1),
            Test("requant/table", lambda: table(env), 1),
            Test("requant/broken", lambda: broken_folder(env), 0.5),
            Test("requant/tokenizers", lambda: tokenizers(env), 2),
            *(Test(f"requant/refused/{r[0]}", lambda r=r: refused(env, r), 0.05) for r in REFUSED),
            *(Test(f"requant/folder/{n}", lambda n=n: folder_case(env, n), 0.2)
              for n in ("llama", "llama_tied_bias", "llama_head", "llama_linear", "llama_llama3", "llama_yarn", "mistral", "qwen2", "qwen3", "gemma", "gemma2",
                        "gemma3", "phi3", "phi3_part", "smollm3"))]
