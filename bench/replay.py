#!/usr/bin/env python3
"""Compare what two versions of ingot generate: for changes that must not change generated code.

    make replay OLD=COMMIT [NAMES=1] [MODELS=conv] [EVERY=10]
    bench/replay.py OLD_BINARY [NEW_BINARY] [--names] [--only TEXT] [--every N] [--targets scalar,avx2]

In: two ingot binaries; NEW is build/ingot by default. Models: text IR of test/**/*.t of the old version, the models that the tests and benchmarks left in build/ (run
`make test` once to have them), models/, test/docs/*.ing. Out: for every model, C for every target of both, bytecode and Prog text of both versions; what differs is
listed by kernel (C function, or kernel of the Prog text), with the first differing line. A model that both versions refuse with the same exit code
counts as equal. Exit code 1 if anything differs.

Comments never count. With --names identifiers do not count either: each text is compared after its identifiers were replaced by numbers in order of
first use (alpha-renaming), so a renamed variable is equal and a swapped one is not.
"""
import argparse
import glob
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "test"))
from lib import target_table  # noqa: E402

TARGETS = tuple(target_table.targets())
LIMIT = 120  # seconds of one command
SKIPPED = {"bad", "tmp", "venv", "lm", "ml", "tflite", "other", "replay", "obj", "gen", "unit"}  # folders of build/ without test models
SHOWN = 12   # models listed per kind of output
KEYWORDS = set("auto break case char const continue default do double else enum extern float for goto if inline int long register restrict return "
               "short signed sizeof static struct switch typedef union unsigned void volatile while".split())


def models(only, every, folder, tree):
    """Paths of all models, sorted; text IR of the .t files of a tree is written into folder."""
    found = []
    for path in (x for part in ("golden", "exec") for x in glob.glob(os.path.join(tree, "test", part, "**", "*.t"), recursive=True)):
        with open(path, encoding="utf-8") as f:
            head = f.read().partition("\n# expect\n")[0]
        out = os.path.join(folder, os.path.relpath(path, tree).replace(os.sep, "_")[:-2] + ".ing")
        with open(out, "w", encoding="utf-8") as f:
            f.write("".join(line for line in head.splitlines(keepends=True) if not line.startswith("#")) + "\n")
        found.append(out)
    found += glob.glob(os.path.join(ROOT, "models", "*.onnx")) + glob.glob(os.path.join(ROOT, "test", "docs", "*.ing"))
    for at, folders, files in os.walk(os.path.join(ROOT, "build")):
        folders[:] = [x for x in folders if x not in SKIPPED and not os.path.islink(os.path.join(at, x))]
        found += [os.path.join(at, x) for x in files if x.endswith((".onnx", ".tflite", ".gguf"))]
    found = sorted({p for p in found if not only or only in p}, key=os.path.basename)
    return found[::every]


def outputs(ingot, model, targets):
    """kind of output -> text or bytes; an exit code if the command fails."""
    got = {}
    with tempfile.TemporaryDirectory() as d:
        jobs = {"C " + t: ["compile", model, "--march", t, "--weights", "file", "--quiet", "-f", "net", "-o", os.path.join(d, "net.c")] for t in targets}
        jobs["bytecode"] = ["compile", model, "--quiet", "-o", os.path.join(d, "net.igb")]
        jobs["Prog"] = ["opt", model, "--quiet", "-o", os.path.join(d, "net.ing")]
        for kind, args in jobs.items():
            try:
                ran = subprocess.run([ingot, *args], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=LIMIT)
            except subprocess.TimeoutExpired:
                got[kind] = "time limit"
                continue
            if ran.returncode:
                got[kind] = ran.returncode
            elif kind in ("Prog", "bytecode"):
                with open(args[-1], "rb") as f:
                    got[kind] = f.read() if kind == "bytecode" else f.read().decode()
            else:
                got[kind] = "".join(open(args[-1][:-1] + ext, encoding="utf-8").read() for ext in "hc")
                weights = args[-1][:-1] + "bin"  # as a file: large texts of numbers take long to compare
                if os.path.exists(weights):
                    with open(weights, "rb") as f:
                        got[kind] += "weights " + hashlib.sha256(f.read()).hexdigest()
    return got


def parts(text):
    """[(name of the kernel or function, its text)] without comments."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"(^|\s)#(?!(if|else|endif|elif|define|undef|include|pragma|error|line)).*", "", text)
    out, name, lines = [], "file", []
    for line in text.splitlines():
        head = re.match(r'kernel "([^"]*)"', line) or re.match(r"[A-Za-z_][\w *]*?\b(\w+)\([^;]*\{$", line)
        if head:
            out.append((name, lines))
            name, lines = head[1], []
        if line.strip():
            lines.append(line.rstrip())
    return out + [(name, lines)]


def renamed(lines):
    """Replaces identifiers by their order of first use in this part."""
    seen = {}
    change = lambda m: m[0] if m[0] in KEYWORDS else f"v{seen.setdefault(m[0], len(seen))}"
    return [re.sub(r"[A-Za-z_]\w*", change, line) for line in lines]


def difference(a, b, names):
    """None if two outputs are equal, else a description of the difference."""
    if a == b:
        return None
    if not isinstance(a, str) or not isinstance(b, str):
        sizes = [f"{len(x)} bytes" if isinstance(x, bytes) else f"exit {x}" if isinstance(x, int) else "text" for x in (a, b)]
        return f"{sizes[0]} vs {sizes[1]}"
    old, new = parts(a), parts(b)
    if len(old) != len(new):
        return f"{len(old)} vs {len(new)} kernels and functions"
    for (name, x), (_, y) in zip(old, new):
        if names:
            x, y = renamed(x), renamed(y)
        if x != y:
            line = next((i for i, (p, q) in enumerate(zip(x, y)) if p != q), min(len(x), len(y)))
            shown = [(z[line] if line < len(z) else "(end)").strip()[:120] for z in (x, y)]
            return f"{name}: {shown[0]}  ->  {shown[1]}"
    return None


def main():
    p = argparse.ArgumentParser(description="compares what two versions of ingot generate")
    p.add_argument("old")
    p.add_argument("new", nargs="?", default=os.path.join(ROOT, "build", "ingot"))
    p.add_argument("--names", action="store_true", help="identifiers do not count")
    p.add_argument("--only", help="only models whose path contains this text")
    p.add_argument("--every", type=int, default=1, help="only every Nth model")
    p.add_argument("--targets", help="default: those that the old version has, too")
    a = p.parse_args()
    known = subprocess.run([a.old, "compile", "--help"], capture_output=True, text=True).stdout
    targets = a.targets.split(",") if a.targets else [t for t in TARGETS if re.search(rf"(?<![\w-]){t}[, ]", known)]
    compared, differ = Counter(), {}
    with tempfile.TemporaryDirectory() as folder:
        tree = os.path.dirname(os.path.dirname(os.path.abspath(a.old)))  # the old version need not read new text
        some = models(a.only, a.every, folder, tree if os.path.isdir(os.path.join(tree, "test", "golden")) else ROOT)
        def one(model):
            x, y = (outputs(os.path.abspath(v), model, targets) for v in (a.old, a.new))
            return model, {kind: difference(x[kind], y[kind], a.names) for kind in x}
        with ThreadPoolExecutor(2) as pool:
            for model, kinds in pool.map(one, some):
                for kind, what in kinds.items():
                    compared[kind] += 1
                    if what:
                        differ.setdefault(kind, []).append((os.path.relpath(model, ROOT) if model.startswith(ROOT) else os.path.basename(model), what))
    for kind, n in compared.items():
        bad = differ.get(kind, [])
        print(f"{kind}: {n} compared, {len(bad)} differ")
        for model, what in bad[:SHOWN]:
            print(f"  {model}: {what}")
        if len(bad) > SHOWN:
            print(f"  and {len(bad) - SHOWN} more")
    print(f"{sum(compared.values())} outputs of {len(some)} models, {sum(map(len, differ.values()))} differ")
    return 1 if differ or not some else 0


if __name__ == "__main__":
    sys.exit(main())
