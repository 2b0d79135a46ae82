"""Writes docs/results/coverage.md from the results of the official suite, and compares two such documents.

A test counts for every operator in its model, with the opset in which that version of the operator appeared. The ULP columns use only
tests without other operators (Constant and Identity aside), so that a figure belongs to the operator of its row. The large models are
left out: they take long and do not test single operators.
"""
import os
import re
from collections import Counter
from .core import ROOT

HEAD = """# Coverage

Written by `make coverage-doc` from a run of all models of onnx 1.22.0 except the nine large ones; do not edit.
`make test` runs the large ones too and checks that this page is current.
Engines: `ref`, `interp`, `interp` lowered for vectors, and `c` (by tcc; `make test` repeats them with gcc).
A case passes when it passes on every engine.
Refused: exit code 3, with a message that names the operator.

| cases | pass | refused | wrong or crashed |
|---|---|---|---|
"""
TABLE = """
## Operators of the official suite

Columns: operator, opset of its version, cases in which it occurs, passed cases, cases refused because of it,
cases refused because of another operator, and for each engine the largest ULP distance to the expected output.
ULP distances count only cases without other operators (-: none, or all outputs are random).

| operator | opset | cases | pass | refused | refused for others | ref | interp | vectors | c |
|---|---|---|---|---|---|---|---|---|---|
"""
ALL = """
## All operators

All operators of `src/front/onnx/onnx_ops.def`: supported opsets, cases of the official suite, and own cases
(`test/ops`, compared with ONNX Runtime) on `ref` and `interp`.
Every operator is composed of core operators, so all engines run it.
Exported models and random models (`make gen-onnx`, `test/make/genparam.py`) are tested in addition.

| operator | opsets | official cases | own cases |
|---|---|---|---|
"""
WAYS = ("ref", "interp", "vectors", "c")
PLAIN = {"Constant", "Identity"}
DOMAINS = {"ai": "", "ml": "ai.onnx.ml::", "ms": "com.microsoft::", "training": "ai.onnx.preview.training::",
           "preview": "ai.onnx.preview::"}


def rows(cases, results):
    table = {}
    for case in cases:
        if case["kind"] == "light":
            continue
        r = results[case["kind"] + "/" + case["name"]]
        alone = set(case["ops"]) - PLAIN or set(case["ops"])
        for op in case["ops"]:
            row = table.setdefault((op, case["versions"][op]), [0, 0, 0, 0, {}])
            row[0] += 1
            row[1] += r["state"] == "pass"
            row[2] += r["blame"] == op
            row[3] += r["blame"] not in (None, op)
            if r["state"] == "pass" and alone == {op}:
                for way, ulp in r["ulp"].items():
                    row[4][way] = max(row[4].get(way, 0), ulp)
    return table


def built():
    """Operator -> list of (first opset, last or 0), from the table of builders."""
    out = {}
    with open(os.path.join(ROOT, "src", "front", "onnx", "onnx_ops.def")) as f:
        for domain, name, since, until in re.findall(r"^ON\((\w+), (\w+), *(\d+), *(\d+),", f.read(), re.M):
            out.setdefault(DOMAINS.get(domain, domain + "::") + name, []).append((int(since), int(until)))
    return out


def order(name):
    return "::" in name, name


def document(cases, results, own):
    states = [r["state"] for name, r in results.items() if not name.startswith("light/")]
    passed, refused = states.count("pass"), states.count("refused")
    text = HEAD + f"| {len(states)} | {passed} | {refused} | {len(states) - passed - refused} |\n" + TABLE
    for (op, opset), row in sorted(rows(cases, results).items(), key=lambda kv: (order(kv[0][0]), kv[0][1])):
        ulp = [str(int(row[4][w])) if w in row[4] else "-" for w in WAYS]
        text += f"| {op} | {opset} | " + " | ".join([*map(str, row[:4]), *ulp]) + " |\n"
    official = Counter(op for c in cases if c["kind"] != "light" for op in c["ops"])
    ours = Counter(op for c in own for op in c["ops"])
    text += ALL
    for op, ranges in sorted(built().items(), key=lambda kv: order(kv[0])):
        spans = ", ".join(f"{a}-{b}" if b else f"{a}-" for a, b in sorted(ranges))
        text += f"| {op} | {spans} | {official[op]} | {ours[op]} |\n"
    return text


def near(x, y):
    """Normalizes a figure that depends slightly on the C library of the machine. The C engine may not have been run."""
    return x == y or y == "-" or (x.isdigit() and y.isdigit() and int(y) <= 2 * int(x) + 4)


def differ(old, new):
    """None, or the first line that differs."""
    a, b = old.splitlines(), new.splitlines()
    if len(a) != len(b):
        return f"{len(a)} lines, expected {len(b)}"
    for x, y in zip(a, b):
        p, q = x.strip("| ").split(" | "), y.strip("| ").split(" | ")
        exact = 3 if len(p) == 4 else 6  # our own cases grow in number
        same = len(p) == len(q) and p[:exact] == q[:exact] and (exact == 3 or all(map(near, p[6:], q[6:])))
        if not same:
            return f"`{x}` is now `{y}`"
    return None
