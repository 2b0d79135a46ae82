"""Makes the operator tables of docs/operators.md and the type table of docs/ir.md from src/ir/ops.def, flags.def and dtypes.def.

    python3 tools/opdoc.py --write    writes them between the markers of these pages
    python3 tools/opdoc.py --check    exits with 1 if a page differs from the tables
"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
STRING = r'"((?:[^"\\]|\\.)*)"'


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


def cell(text):
    return text.replace('\\"', '"').replace("|", "\\|")


def small(flags):
    return " ".join(f.lower() for f in flags.split("|") if f != "0")


def scalars(text):
    yield "| operator | operands | of class | result | flags | meaning |"
    yield "| --- | --- | --- | --- | --- | --- |"
    rows = re.findall(r"^SC\((\w+), *(\d+), *(\w+), *(\w+), *([\w|]+), *" + STRING + r"\)", text, re.M)
    for name, nin, cls, res, flags, meaning in rows:
        yield f"| `{name}` | {nin} | {cls} | {res} | {small(flags)} | {cell(meaning) or name} |"


def structural(text):
    yield "| operator | kind | operands | results | flags | attributes | meaning |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    row = r"^OP\((\w+), *(\d+), *(\d+), *(\d+), *(\w+), *([\w|]+), *" + STRING + ", *" + STRING + r"\)"
    for name, lo, hi, nout, kind, flags, attrs, meaning in re.findall(row, text, re.M):
        nin = lo if lo == hi else f"{lo} or more"
        nout = "any" if nout == "65535" else nout
        attrs = " ".join(f"`{a}`" for a in attrs.split())
        yield f"| `{name}` | {kind} | {nin} | {nout} | {small(flags)} | {attrs} | {cell(meaning)} |"


def flags(text):
    yield "| flag | meaning |"
    yield "| --- | --- |"
    for name, meaning in re.findall(r"^FLAG\((\w+), *" + STRING + r"\)", text, re.M):
        yield f"| {name.lower()} | {cell(meaning)} |"


def dtypes(text):
    yield "| type | class | bits | bytes in memory | ONNX code | meaning |"
    yield "| --- | --- | --- | --- | --- | --- |"
    rows = re.findall(r"^DT\((\w+), *(\w), *(\d+), *(\d+), *(\d+), *" + STRING + r"\)", text, re.M)
    for name, cls, bits, size, onnx, meaning in rows:
        if name != "none":
            yield f"| `{name}` | {cls} | {bits} | {size} | {onnx} | {cell(meaning)} |"


def tables():
    """{page: {mark: lines}}"""
    ops, types, about = read("src", "ir", "ops.def"), read("src", "ir", "dtypes.def"), read("src", "ir", "flags.def")
    return {"ir.md": {"types": dtypes(types)},
            "operators.md": {"scalar operators": scalars(ops), "structural operators": structural(ops), "flags": flags(about)}}


def fill(page, doc, marks):
    for mark, lines in marks.items():
        lines = list(lines)
        if len(lines) < 10:
            sys.exit(f"{mark}: the table could not be read")
        begin, end = f"<!-- {mark}: made by tools/opdoc.py -->\n", f"<!-- end of {mark} -->\n"
        if begin not in doc or end not in doc:
            sys.exit(f"docs/{page} lacks the markers of {mark}")
        doc = doc[:doc.index(begin)] + begin + "\n".join(lines) + "\n" + doc[doc.index(end):]
    return doc


def main():
    if sys.argv[1:] not in (["--write"], ["--check"]):
        sys.exit(__doc__.strip())
    for page, marks in tables().items():
        old = read("docs", page)
        new = fill(page, old, marks)
        if sys.argv[1] == "--write":
            with open(os.path.join(ROOT, "docs", page), "w", encoding="utf-8") as f:
                f.write(new)
        elif new != old:
            sys.exit(f"docs/{page} is behind the tables: run python3 tools/opdoc.py --write")


main()
