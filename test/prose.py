#!/usr/bin/env python3
"""Report prose that breaks the writing rules a script can check (docs/style.md).

Reads comments and strings of C and JavaScript files, docstrings and comments of Python files, Markdown,
the man page, the Makefile, HTML and the help of the compiler.
Prints path:line: rule: text for every violation; exits with 1 if there is one.
`test/prose.py PATH...` restricts the report to paths that start with one of the arguments.
"""

import ast
import io
import os
import re
import subprocess
import sys
import tokenize

import wc

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BANNED = re.compile(
    r"\b(behind|beside|nobody|whoever|likewise|as above|same as above|foretells?|foretold|second cache|third cache"
    r"|rate of learning|of (?:its|their|our|his|one's) own|as ever|numbers? of (?:8|16|32|64) bits)\b", re.I)
# Identifiers that have another name now; the readers of old text forms and options still know them.
RENAMED = re.compile(
    r"\b(ST_barrier|ST_fetch|IG_(?:HERE|FRESH|HOLD|AHEAD)|SF_(?:hold|ahead)|OP_(?:pairs|sign4|dot4|dot2|unblock|dot_blocks"
    r"|suppress|within|exp0|exp1|gelu2)|KernelTakes|tile_stand|tile_leave|prog_ready(?:_list)?|put_own)\b")
IS_NO = re.compile(r"\b(is|are|was|were)[\s*]+no (?!longer|more\b|less\b|larger|smaller|greater|fewer|later|earlier|worse)", re.I)
OPENS = re.compile(r"^(Of|By|What|Likewise|Whose|Whoever|For|Where|Like|As|Also)\b")
TEXT_OPENS = re.compile(r"^(Of|By|What|Whose|Likewise|For|Where|As) ")  # messages and help; lower case continues a sentence
SENTENCES = re.compile(r"(?:[a-zA-Z)`*]|[a-z ]\S*\d)[.!?] +(?=[A-Z`*\[]|(?:ingot|nvcc|gcc|clang|llama\.cpp) )")  # two sentences on a line of Markdown
ABBREVIATION = re.compile(r"\b(e\.g|i\.e|vs|etc|cf|approx)\. ")
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
    for rule, pattern in (("banned word", BANNED), ('"is no"', IS_NO), ("renamed", RENAMED)):
        for found in pattern.finditer(text):
            n = text.count("\n", 0, found.start())
            yield f"{path}:{line + n}: {rule}: {text.splitlines()[n].strip()}"
    opens = (OPENS if comment else TEXT_OPENS).match(text.lstrip('/*#" \n'))
    if comment is not None and opens:
        yield f"{path}:{line}: opens with {opens.group(1)}: {text.splitlines()[0].strip()}"


def short_messages(path, text):
    """Texts of fail() with at most three words that do not say what was expected."""
    for found in re.finditer(r"\bfail\([^;\"]*?(\"(?:\\.|[^\"\\])*\")\s*[,)]", text):
        message = found.group(1)[1:-1]
        if len(message.split()) <= 3 and "expected" not in message and message != "out of memory" and not re.fullmatch(r".*%s|.*%\.\*s.*|%s, .*", message):
            yield f"{path}:{text.count(chr(10), 0, found.start(1)) + 1}: message of three words or fewer: {message}"


def c_file(path):
    text = read(path)
    for found in TOKENS.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        if found.group(1):
            yield from words(path, line, found.group(1), True)
        elif found.group(2):
            yield from words(path, line, found.group(2), False)
    yield from short_messages(path, text)


def python_file(path):
    """Docstrings and comments."""
    text = read(path)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            yield from words(path, node.body[0].lineno, ast.get_docstring(node, clean=False), True)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield from words(path, token.start[0], token.string, True)


def two_sentences(row):
    return SENTENCES.search(ABBREVIATION.sub("", row))


def markdown(path):
    code = False
    for n, row in enumerate(read(path).splitlines(), 1):
        if row.lstrip().startswith("```"):
            code = not code
        if code or row.startswith("    "):
            continue
        plain = re.sub(r"`[^`]*`", "`", row)
        yield from words(path, n, plain, None)
        if not plain.lstrip().startswith(("|", "#", "<")) and two_sentences(plain):
            yield f"{path}:{n}: two sentences on one line: {row.strip()}"
        table_or_link = row.lstrip().startswith("|") or re.search(r"\]\(|<http", row) or row.startswith(("#", "<"))
        if len(row) > COLUMNS and not table_or_link:
            yield f"{path}:{n}: over {COLUMNS} columns ({len(row)}): {row[:60]}..."


def names():
    """File names of src that occur twice."""
    where = {}
    for path in listed("src/*.c", "src/*.h", "src/*.def"):
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
            said = re.match(r"  +(?:-\w, )?--[\w-]+(?: \S+)?  +(.*)", row)
            yield from words(where, n, said.group(1).capitalize() if said else row, False)


def main():
    only = tuple(sys.argv[1:])
    found = []
    for path in listed("src/*.c", "src/*.h", "src/*.def", "tools/*.c", "tools/*.h", "tools/*.mjs", "tools/*.mts", "tools/*.js", "bench/*.c"):
        found.extend(c_file(path))
    for path in listed("tools/*.py", "bench/*.py", "python/*.py", "test/*.py"):
        found.extend(python_file(path))
    for path in listed("*.md", "docs/*.md"):
        if not path.startswith("docs/results/"):
            found.extend(markdown(path))
    for path in listed("docs/ingot.1", "Makefile", "cmake/*", "python/ingot/*.py", "tools/*.html", "bench/why.txt"):
        for n, row in enumerate(read(path).splitlines(), 1):
            found.extend(words(path, n, row, None))
    found.extend(names())
    if wc.words() > wc.WORDS:
        found.append(f"docs: {wc.words()} hand-written words, expected at most {wc.WORDS}")
    program = os.path.join(ROOT, "build", "ingot")
    if os.path.exists(program):
        found.extend(help_lines(program))
    found = [x for x in found if not only or x.startswith(only)]
    print("\n".join(found + [f"{len(found)} violations"] if found else ["0 violations"]))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
