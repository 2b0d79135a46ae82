"""docs/tour.md follows a small model through the compiler: the files equal those of tools/mktour.py, and sections named after
passes are in the order of the pipeline.

docs/glossary.md is sorted.
docs.py checks that documents show what ingot prints.
"""
import os
import re
from lib.core import ROOT, Fail, Test, run, tail

CHECK = "tour/passes tour/glossary"

FILES = ("tour.onnx", "tour.npy")


def model(env):
    python, out = env.need_python(), env.scratch("tour")
    got = run([python, os.path.join(ROOT, "tools", "mktour.py"), out], 120)
    if got.rc:
        raise Fail(f"tools/mktour.py ended with {got.rc}: {tail(got.text())}")
    for name in FILES:
        with open(os.path.join(out, name), "rb") as a, open(os.path.join(ROOT, "test", "docs", name), "rb") as b:
            if a.read() != b.read():
                raise Fail(f"test/docs/{name} is not what tools/mktour.py writes")


def passes(env):
    """Sections named after passes are in the order of the pipeline; `ingot passes` in the document lists all of them."""
    got = run([env.need_ingot(), "passes"], 20)
    names = [line.split()[0] for line in got.out.decode().splitlines()]
    with open(os.path.join(ROOT, "docs", "tour.md"), encoding="utf-8") as f:
        sections = re.findall(r"^## (\w+)$", f.read(), re.M)
    shown = [s for s in sections if s in names]
    if len(shown) < 10 or shown != [n for n in names if n in shown]:
        raise Fail(f"the passes are {' '.join(names)}; sections of docs/tour.md are {' '.join(sections)}")


def glossary():
    """Terms are unique and in alphabetical order; 30 are marked as those to read first."""
    with open(os.path.join(ROOT, "docs", "glossary.md"), encoding="utf-8") as f:
        rows = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", f.read(), re.M)[2:]
    terms = [r.strip("*").lower() for r in rows]
    if not 100 <= len(rows) <= 140 or terms != sorted(set(terms)) or sum(r.startswith("**") for r in rows) != 30:
        wrong = next((b for a, b in zip(terms, terms[1:]) if a >= b), "none")
        raise Fail(f"docs/glossary.md: {len(rows)} terms, first one out of order: {wrong}; {sum(r.startswith('**') for r in rows)} are marked")


def tests(env):
    return [Test("tour/model", lambda: model(env), cost=2), Test("tour/passes", lambda: passes(env)),
            Test("tour/glossary", glossary)]
