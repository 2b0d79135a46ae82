"""Reads the table of targets from target.def, for tests and benchmarks."""
import glob
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def path():
    return glob.glob(os.path.join(ROOT, "src", "ir", "**", "target.def"), recursive=True)[0]


def _defines(text, prefix):
    """Name -> (base or None, the rest) of `#define PREFIX_name PREFIX_base, ...`."""
    found = {}
    for name, body in re.findall(rf"^#define {prefix}_(\w+) ((?:.*\\\n)*.*)$", text, re.M):
        body = re.sub(r"\\\n\s*", "", body).strip()
        base = re.match(rf"{prefix}_(\w+),\s*", body)
        found[name] = (base[1] if base else None, body[base.end():] if base else body)
    return found


def _rows(prefix, columns):
    with open(path(), encoding="utf-8") as f:
        defines = _defines(f.read(), prefix)

    def row(name):
        base, own = defines[name]
        return {**(row(base) if base else {}), **columns(own)}
    return {name: row(name) for name in defines}


def _columns(text):
    found = {name: value.strip() for name, value in re.findall(r'\.(\w+) = ((?:"[^"]*"|[^",])*)', text)}
    return {**found, **{"costs": m[1] for m in re.finditer(r"COSTS\((\w+)\)", text)}}


def targets():
    """Name -> {column: value}, texts without their quotes, in the order of the table."""
    rows = _rows("TARGET", _columns)
    with open(path(), encoding="utf-8") as f:
        names = re.findall(r'^TARGET\("([^"]+)", TARGET_(\w+)\)', f.read(), re.M)
    return {name: {k: v.strip('"') for k, v in rows[row].items()} for name, row in names}


def costs():
    """Name of a cost table -> {cost: (value, measured value)}."""
    return _rows("COSTS", lambda text: {name: (float(value), seen) for name, value, seen in re.findall(r'AT\((\w+), ([^,]+), "([^"]*)"\)', text)})


def multi():
    """The targets of --march multi."""
    with open(path(), encoding="utf-8") as f:
        return re.search(r'^MULTI\("([^"]+)"\)', f.read(), re.M)[1].split(",")
