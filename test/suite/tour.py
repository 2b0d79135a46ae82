"""docs/tour.md follows a model of ours through every stage: the files are what tools/mktour.py writes, and the document shows every pass,
as does the table of docs/ir.md; docs/nouns.md stays short. That it shows what ingot prints is checked by docs.py, as for every document."""
import os
import re
from lib.core import ROOT, Fail, Test, run, tail

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
    """One section per pass, in the order of the pipeline."""
    got = run([env.need_ingot(), "passes"], 20)
    names = [line.split()[0] for line in got.out.decode().splitlines()]
    with open(os.path.join(ROOT, "docs", "tour.md"), encoding="utf-8") as f:
        sections = re.findall(r"^## (\w+)$", f.read(), re.M)
    shown = [s for s in sections if s in names]
    if not names or shown != names:
        raise Fail(f"the passes are {' '.join(names)}; sections of docs/tour.md are {' '.join(sections)}")
    with open(os.path.join(ROOT, "docs", "ir.md"), encoding="utf-8") as f:
        rows = re.findall(r"^\| `(\w+)` \|", f.read().partition("\n## Passes\n")[2], re.M)
    if rows != names:
        raise Fail(f"the passes are {' '.join(names)}; rows of docs/ir.md are {' '.join(rows)}")


def nouns(env):
    """A page that is read first is short."""
    with open(os.path.join(ROOT, "docs", "nouns.md"), encoding="utf-8") as f:
        rows = re.findall(r"^\| ([\w, ]+) \| ", f.read(), re.M)[1:]
    words = [w for row in rows for w in row.split(", ")]
    if not 20 <= len(rows) <= 30 or len(set(words)) != len(words):
        raise Fail(f"docs/nouns.md has {len(rows)} rows: {' | '.join(rows)}")


def tests(env):
    return [Test("tour/model", lambda: model(env), cost=2), Test("tour/passes", lambda: passes(env)),
            Test("tour/nouns", lambda: nouns(env))]
