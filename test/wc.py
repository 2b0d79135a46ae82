"""Sizes of the source files: the ten largest, every file over 600 lines marked, the total per folder.

Exit status 1 when a file is longer than 800 lines: two ideas share a room.
"""
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KINDS = (".c", ".h", ".def", ".py", ".t")
MARK, LIMIT = 600, 800


def sizes():
    for top in ("src", "test", "tools", "bench"):
        for folder, _, files in os.walk(os.path.join(ROOT, top)):
            for name in files:
                path = os.path.join(folder, name)
                if name.endswith(KINDS) or name in ("run", "setup"):
                    with open(path, "rb") as f:
                        yield sum(1 for _ in f), os.path.relpath(path, ROOT)


def main():
    rows = sorted(sizes(), reverse=True)
    code = [r for r in rows if r[1].startswith("src/")]
    for n, path in code[:10]:
        print(f"{n:7} {path}")
    for n, path in rows:
        if n > MARK:
            print(f"{n:7} {path}  over {LIMIT if n > LIMIT else MARK} lines")
    totals = {}
    for n, path in rows:
        folder = os.path.dirname(path)
        count, lines = totals.get(folder, (0, 0))
        totals[folder] = (count + 1, lines + n)
    for folder, (count, lines) in sorted(totals.items()):
        print(f"{lines:7} {folder} ({count} files)")
    print(f"{sum(n for n, _ in code):7} src in all, {sum(n for n, _ in rows):7} with tests and tools")
    sys.exit(1 if any(n > LIMIT for n, _ in rows) else 0)


main()
