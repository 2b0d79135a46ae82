"""The documents are true: commands shown in them print what is shown, links lead somewhere, every operator row is described.

A block that opens with ```console and a line `$ ingot ...` is run in the repository root, and its other lines must be what the
command prints (several commands per block are allowed; a last line `...` stands for the rest). --bless rewrites such blocks.
"""
import os
import re
import shlex
from lib.core import ROOT, Fail, Test, explain, run, tail

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)


def documents():
    out = [n for n in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md") if os.path.exists(os.path.join(ROOT, n))]
    folder = os.path.join(ROOT, "docs")
    return out + [f"docs/{n}" for n in sorted(os.listdir(folder)) if n.endswith(".md")] if os.path.isdir(folder) else out


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as f:
        return f.read()


def commands(block):
    """[(command, shown output)] of one block."""
    out = []
    for line in block.splitlines(keepends=True):
        if line.startswith("$ "):
            out.append([line[2:].strip(), ""])
        elif out:
            out[-1][1] += line
    return out


def printed(env, command):
    words = shlex.split(command)
    if not words or words[0] not in ("ingot", "build/ingot") or any(w in words for w in ("|", ">", ">>", "<", "&&", ";")):
        return None
    got = run([env.ingot, *words[1:]], 60, cwd=ROOT)
    if got.timed_out or got.rc not in (0, 1, 3, 4):
        raise Fail(f"`{command}`: {explain(got)}: {tail(got.text(), 3)}")
    return (got.out + got.err).decode("utf-8", "replace")


def shown(env, name):
    env.need_ingot()
    text, wrong = read(name), []

    def replace(m):
        block = ""
        for command, old in commands(m[1]):
            new = printed(env, command)
            if new is None or old.endswith("...\n") and new.startswith(old[:-4]):
                new = old
            if new != old:
                wrong.append(command)
            block += f"$ {command}\n{new}"
        return f"```console\n{block}```"
    fresh = BLOCK.sub(replace, text)
    if wrong and env.bless:
        with open(os.path.join(ROOT, name), "w", encoding="utf-8") as f:
            f.write(fresh)
    elif wrong:
        raise Fail("prints something else now (test/run --bless docs rewrites it): " + "; ".join(wrong))


def links(name):
    text = re.sub(r"```.*?```", "", read(name), flags=re.S)
    missing = [x for x in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text)
               if "://" not in x and not os.path.exists(os.path.join(ROOT, os.path.dirname(name), x))]
    if missing:
        raise Fail("links to what is not there: " + " ".join(missing))


def paths(name):
    """Files of the repository that a document mentions in `code` exist."""
    found = re.findall(r"`((?:src|test|docs|tools|bench|models)/[\w./-]+)`", read(name))
    missing = sorted({x for x in found if not os.path.exists(os.path.join(ROOT, x))})
    if missing:
        raise Fail("mentions files that are not there: " + " ".join(missing))


def manual(env):
    """The man page knows every verb and option of --help."""
    env.need_ingot()
    page = read("docs/ingot.1").replace("\\-", "-")
    verbs = re.findall(r"^  (\w+) ", run([env.ingot, "--help"], 20).out.decode(), re.M)
    wanted = {f".B {v}" for v in verbs}
    for verb in verbs:
        wanted |= set(re.findall(r"--[\w-]+", run([env.ingot, verb, "--help"], 20).out.decode()))
    missing = sorted(w for w in wanted if w not in page)
    if missing or len(verbs) < 5:
        raise Fail("docs/ingot.1 lacks " + " ".join(missing))


def tables():
    """The tables of operators and types in docs/ir.md are those of the .def files."""
    got = run(["python3", os.path.join(ROOT, "tools", "opdoc.py"), "--check"], 20)
    if got.rc:
        raise Fail(got.text().strip())


def tests(env):
    out = [Test("docs/manual", lambda: manual(env)), Test("docs/tables", tables)]
    for name in documents():
        out.append(Test(f"docs/links {name}", lambda n=name: links(n)))
        out.append(Test(f"docs/paths {name}", lambda n=name: paths(n)))
        if BLOCK.search(read(name)):
            out.append(Test(f"docs/commands {name}", lambda n=name: shown(env, n)))
    return out
