"""Small files of test/seeds that were once refused, computed wrongly or harmful: models on every engine and in ONNX Runtime,
Prog as text, programs of the language, tokenizers, a network that took gcc a minute.

README.md of that folder says what each one attacked.
"""
import gzip
import os
import shutil
import sys
from lib.core import ROOT, Fail, Test, explain, must, need, run, tail, want

SEEDS = os.path.join(ROOT, "test", "seeds")
SIZES = {"rnn_quantize_static.onnx": ["-d", "b=2", "-d", "s=5"]}
CC_SECONDS = 15  # of the C compiler


def model(env, name):
    env.need_ingot()
    got = run([env.ingot, "verify", os.path.join(SEEDS, name), *SIZES.get(name, []), "--python", env.need_python()], 60)
    if got.rc or b"onnxruntime/ref" not in got.out:
        raise Fail(f"{explain(got)}: {tail(got.text(), 4)}")


def index(env, name):
    """An index that would overflow is refused on every engine, with its position."""
    for engine in ("interp", "vm", "c"):
        got = run([env.need_ingot(), "run", os.path.join(SEEDS, name), "--engine", engine], 20)
        want(got.rc == 4 and "index 1 of W has a term with factor 9223372036854775807" in got.text(), f"{engine}: {explain(got)}: {tail(got.text())}")


def inspected(env, name):
    """A program that is inspected, compiled or verified neither writes nor reads a file."""
    folder = env.scratch("seeds", name)
    shutil.copy(os.path.join(SEEDS, name), folder)
    for verb in ("inspect", "compile", "verify"):
        got = run([env.need_ingot(), verb, name], 20, cwd=folder)
        want(got.rc and "without file access" in got.text() and os.listdir(folder) == [name], f"{verb}: {explain(got)}: {tail(got.text())}: {os.listdir(folder)}")


def itself(env, name):
    folder = env.scratch("seeds", name)
    shutil.copy(os.path.join(SEEDS, name), folder)
    got = run([env.need_ingot(), "run", name], 20, cwd=folder)
    with open(os.path.join(folder, name), "rb") as f, open(os.path.join(SEEDS, name), "rb") as was:
        want(got.rc == 2 and "would be replaced by the output, but is read" in got.text() and f.read() == was.read(), f"{explain(got)}: {tail(got.text())}")


def tokenizer(env, name):
    """1 MB of text without a place to cut, text that grows when it is normalized, and text that a regular expression scans from
    every byte."""
    for text in (b"a" * 1_000_000, b"aaab" * 250_000, ("\ufdfa" * 333_333).encode(), ("e" + "\u0301" * 499_999).encode(), b"\xff" * 1_000_000):
        measure = "import resource, subprocess, sys\nrc = subprocess.call(sys.argv[1:])\nsys.stderr.write(f'\\n{rc} {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss}')"
        got = run([sys.executable, "-c", measure, env.need_ingot(), "tokenize", os.path.join(SEEDS, name), "--text", "-"], 60, stdin=text)
        rc, used = got.text().split()[-2:]
        most = 64 + 8 * got.out.count(b" ") / 2**20  # the ids are not part of the text
        refused = rc == "3" and "regular expression of the tokenizer" in got.text()
        want((rc == "0" or refused) and int(used) / 1024 < most, f"{text[:4]!r}: exit {rc}, {int(used) >> 10} MB, expected at most {most:.0f}: {tail(got.text())}")


def slow(env, name):
    folder = env.scratch("seeds", name)
    path, source = os.path.join(folder, "net.onnx"), os.path.join(folder, "net.c")
    with gzip.open(os.path.join(SEEDS, name)) as f, open(path, "wb") as to:
        to.write(f.read())
    for march in ("avx2", "avx512"):
        must([env.need_ingot(), "compile", path, "-d", "b=1", "--march", march, "--weights", "pointer", "--quiet", "-o", source], "compile")
        limit = f"ulimit -t {CC_SECONDS}; exec "
        must(["sh", "-c", limit + '"$@"', "sh", need("gcc"), "-O2", "-c", source, "-o", source + ".o"], f"gcc for {march}, {CC_SECONDS} s of processor time")


KINDS = {".onnx": model, ".ing": index, ".json": tokenizer, ".gz": slow}
NAMED = {"inspect_writes_files.ch": inspected, "save_replaces_itself.ch": itself}


def tests(env):
    names = sorted(name for name in os.listdir(SEEDS) if name != "README.md")
    return [Test(f"seeds/{name}", lambda name=name: (NAMED.get(name) or KINDS[os.path.splitext(name)[1]])(env, name), cost=8 if name.endswith(".gz") else 1) for name in names]
