#!/usr/bin/env python3
"""Report prose that breaks the writing rules a script can check (docs/style.md).

Reads comments and strings of C files, Markdown, the man page, the Makefile, the Python package and
the help of the compiler.
Prints path:line: rule: text for every violation; exits with 1 if there is one.
`test/prose.py PATH...` restricts the report to paths that start with one of the arguments.
"""

import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BANNED = re.compile(
    r"\b(behind|beside|nobody|whoever|likewise|foretells?|foretold|second cache|third cache"
    r"|rate of learning|numbers? of (?:8|16|32|64) bits)\b", re.I)
IS_NO = re.compile(r"\b(is|are|was|were) no (?!longer|more\b|less\b|larger|smaller|greater|fewer|later|earlier|worse)", re.I)
OPENS = re.compile(r"^(Of|By|What|Likewise|Whose|Whoever)\b")
COLUMNS = 100
TOKENS = re.compile(r'(/\*.*?\*/|//[^\n]*)|("(?:\\.|[^"\\\n])*")|\'(?:\\.|[^\'\\\n])*\'', re.S)


def listed(*patterns):
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *patterns], cwd=ROOT, capture_output=True, text=True)
    return sorted(x for x in out.stdout.splitlines() if os.path.isfile(os.path.join(ROOT, x)))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def words(path, line, text, comment):
    """Violations of one comment or string that starts at a line."""
    for n, row in enumerate(text.splitlines()):
        for rule, found in (("banned word", BANNED.search(row)), ('"is no"', IS_NO.search(row))):
            if found:
                yield f"{path}:{line + n}: {rule}: {row.strip()}"
    if comment and OPENS.match(text.lstrip("/* \n")):
        yield f"{path}:{line}: comment opens with Of, By, What, Likewise or Whose: {text.splitlines()[0].strip()}"


def c_file(path):
    text = read(path)
    for found in TOKENS.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        if found.group(1):
            yield from words(path, line, found.group(1), True)
        elif found.group(2):
            yield from words(path, line, found.group(2), False)


def markdown(path):
    code = False
    for n, row in enumerate(read(path).splitlines(), 1):
        if row.lstrip().startswith("```"):
            code = not code
        if code or row.startswith("    "):
            continue
        yield from words(path, n, re.sub(r"`[^`]*`", "", row), False)
        table_or_link = row.lstrip().startswith("|") or re.search(r"\]\(|<http", row) or row.startswith(("#", "<"))
        if len(row) > COLUMNS and not table_or_link:
            yield f"{path}:{n}: over {COLUMNS} columns ({len(row)}): {row[:60]}..."


def names():
    """File names of src that occur twice."""
    where = {}
    for path in listed("src/*.c", "src/*.h"):
        where.setdefault(os.path.basename(path), []).append(path)
    for name, paths in where.items():
        if len(paths) > 1:
            yield f"{paths[0]}:1: file name occurs again: {' '.join(paths[1:])}"


def help_lines(program):
    verbs = re.findall(r"^  (\w+) ", subprocess.run([program, "--help"], capture_output=True, text=True).stdout, re.M)
    for verb in [None, *verbs]:
        args = [verb, "--help-all"] if verb else ["--help"]
        got = subprocess.run([program, *args], capture_output=True, text=True)
        where = "ingot " + " ".join(args)
        for n, row in enumerate(got.stdout.splitlines(), 1):
            if len(row) > COLUMNS:
                yield f"{where}:{n}: over {COLUMNS} columns: {row[:60]}..."
            yield from words(where, n, row, False)


def main():
    only = tuple(sys.argv[1:])
    found = []
    for path in listed("src/*.c", "src/*.h", "src/*.def", "tools/*.c", "tools/*.h"):
        found.extend(c_file(path))
    for path in listed("*.md", "docs/*.md"):
        if not path.startswith("docs/results/"):
            found.extend(markdown(path))
    for path in listed("docs/ingot.1", "Makefile", "cmake/*", "python/ingot/*.py", "tools/*.js"):
        for n, row in enumerate(read(path).splitlines(), 1):
            found.extend(words(path, n, row, False))
    found.extend(names())
    program = os.path.join(ROOT, "build", "ingot")
    if os.path.exists(program):
        found.extend(help_lines(program))
    found = [x for x in found if not only or x.startswith(only)]
    print("\n".join(found + [f"{len(found)} violations"] if found else ["0 violations"]))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
