"""Sizes of the source files: the ten largest, files and functions above the guideline, the total per folder; words of docs/.

The guideline (docs/style.md) is a hint, not a limit: a long file or function that holds one idea may stay.
"""
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KINDS = (".c", ".h", ".def", ".py", ".t")
FILE, FUNCTION = 800, 80
GENERATED = ("operators.md",)  # pages of docs/ that tables are written into
WORDS = 30000  # most hand-written words of docs/*.md; test/prose.py checks it


def sizes():
    for top in ("src", "test", "tools", "bench"):
        for folder, _, files in os.walk(os.path.join(ROOT, top)):
            for name in files:
                path = os.path.join(folder, name)
                if name.endswith(KINDS) or name in ("run", "setup"):
                    with open(path, "rb") as f:
                        yield sum(1 for _ in f), os.path.relpath(path, ROOT)


def functions(path):
    """(lines, name) of every function, as clang-format lays them out: from a line at the margin to the next `}` there."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        lines = f.read().splitlines()
    start = None
    for i, line in enumerate(lines):
        if re.match(r"[A-Za-z].*\w\(", line) and not line.endswith(";"):
            start = i
        elif line == "}" and start is not None:
            yield i - start + 1, re.search(r"(\w+)\(", lines[start])[1]
            start = None


def words():
    """Hand-written words of docs/*.md: generated pages and code do not count."""
    total = 0
    for name in sorted(os.listdir(os.path.join(ROOT, "docs"))):
        if not name.endswith(".md") or name in GENERATED:
            continue
        with open(os.path.join(ROOT, "docs", name), encoding="utf-8") as f:
            text = re.sub(r"^```.*?^```", "", f.read(), flags=re.S | re.M)
        total += len(re.findall(r"\S*\w\S*", text))  # not the bars of tables and the dashes of lists
    return total


def main():
    rows = sorted(sizes(), reverse=True)
    code = [r for r in rows if r[1].startswith("src/")]
    for n, path in code[:10]:
        print(f"{n:7} {path}")
    for n, path in rows:
        if n > FILE:
            print(f"{n:7} {path}  over {FILE} lines: does it hold two ideas?")
    for path in (path for _, path in rows if path.endswith((".c", ".h"))):
        for n, name in functions(path):
            if n > FUNCTION:
                print(f"{n:7} {path}  {name} is over {FUNCTION} lines")
    totals = {}
    for n, path in rows:
        folder = os.path.dirname(path)
        count, lines = totals.get(folder, (0, 0))
        totals[folder] = (count + 1, lines + n)
    for folder, (count, lines) in sorted(totals.items()):
        print(f"{lines:7} {folder} ({count} files)")
    print(f"{sum(n for n, _ in code):7} src in all, {sum(n for n, _ in rows):7} with tests and tools")
    print(f"{words():7} hand-written words in docs/*.md, of at most {WORDS}")


if __name__ == "__main__":
    main()
