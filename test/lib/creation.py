"""Finds calls in which two or more arguments create nodes of the Graph. C does not fix the order of evaluation, so the numbers of the
nodes would depend on the compiler that built ingot.

    places(root)  ["src/front/x.c:12: mk_add: two arguments create nodes", ...]

A function creates nodes if its name begins with mk_, if it calls graph_add, or if it calls such a function.
"""
import os
import re

FOLDERS = ("front", "lang", "pass/graph")  # folders that create nodes
WORD = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
HEAD = re.compile(r"^(static\s+)?(?!typedef|struct|enum|return|else)[A-Za-z_][\w *]*?[ *](\w+)\([^;{}]*\)\s*\{", re.M)
KEYWORDS = {"if", "for", "while", "switch", "return", "sizeof"}


def blank(text):
    """The text with comments and strings replaced by spaces."""
    text = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)
    return re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', lambda m: " " * len(m.group()), text)


def read_sources(root):
    found = {}
    for folder, _, names in sorted(os.walk(os.path.join(root, "src"))):
        for name in sorted(names):
            if name.endswith((".c", ".h")):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as f:
                    found[os.path.relpath(path, root)] = blank(f.read())
    return found


def arguments(text, at):
    """Arguments of the call whose parenthesis opens before at."""
    depth, out, start = 1, [], at
    while depth and at < len(text):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if not depth or (depth == 1 and text[at] == ","):
            out.append(text[start:at])
            start = at + 1
        at += 1
    return out


class Makers:
    """Functions that create nodes; a static one is known in its file alone."""

    def __init__(self, sources):
        calls, home = {}, {}
        for path, text in sources.items():
            for m in HEAD.finditer(text):
                body = text[m.end():(text.find("\n}", m.end()) + 1 or len(text))]
                key = (path if m.group(1) else "", m.group(2))
                calls.setdefault(key, set()).update(WORD.findall(body))
                home[key] = path
        self.calls, self.makers, more = calls, {("", "graph_add")}, True
        while more:
            new = {k for k, names in calls.items() if k not in self.makers and any(self.makes(home[k], n) for n in names)}
            self.makers |= new
            more = bool(new)

    def makes(self, path, name):
        own = (path, name)
        return name.startswith("mk_") or (own if own in self.calls else ("", name)) in self.makers


def places(root):
    sources, out = read_sources(root), []
    makers = Makers(sources)
    for path, text in sources.items():
        if not any(path.startswith(f"src/{folder}/") for folder in FOLDERS):
            continue
        for m in WORD.finditer(text):
            count = sum(any(makers.makes(path, n) for n in WORD.findall(a)) for a in arguments(text, m.end()))
            if m.group(1) not in KEYWORDS and count > 1:
                out.append(f"{path}:{text.count(chr(10), 0, m.start()) + 1}: {m.group(1)}: {count} arguments create nodes; give all but one a name before the call")
    return out
