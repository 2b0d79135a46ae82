"""Static checks: formatting, clang-tidy, include layering, file sizes, banned words.

clang-tidy is slow, so a file that passed is checked again only after it, a header or the settings change.
test/heavy/lint.py has cppcheck, and clang's analyzer with a higher limit.
"""
import hashlib
import os
import re
import shutil
import prose as rules
from lib import creation
from lib import layering as rule
from lib.core import ROOT, Fail, Test, need, run, tail

CHECK = "lint/layering* lint/types lint/prose* lint/format"

NODES = 10000  # the analyzer's limit per function: low, which is thirteen times faster than the default, with the same findings here


def sources(*kinds, tops=("src", "test")):
    for top in tops:
        for folder, _, files in sorted(os.walk(os.path.join(ROOT, top))):
            for name in sorted(files):
                if name.endswith(kinds):
                    yield os.path.relpath(os.path.join(folder, name), ROOT)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def layering():
    wrong = rule.places(ROOT)
    if wrong:
        raise Fail("\n  ".join([f"{len(wrong)} places"] + wrong[:20]))


# Violations that the rule must find: files of a small tree and the place of the message; none: no violation.
PLANTED = [
    ({"ir/prog/prog.h": "", "pass/p.c": '#include "ir/prog/prog.h"\n'}, None),
    ({"back/b.h": "", "pass/p.c": '#include "back/b.h"\n'}, "src/pass/p.c:1: pass must not see src/back/b.h"),
    ({"ir/prog/prog.h": "", "pass/graph/grad.h": '#include "ir/prog/prog.h"\n', "front/onnx/o.c": '#include <stdio.h>\n#include "pass/graph/grad.h"\n'},
     "src/front/onnx/o.c:2: front/onnx must not see src/ir/prog/prog.h through src/pass/graph/grad.h"),
    ({"ir/graph/graph.h": "", "ir/prog/p.c": '#include "ir/graph/graph.h"\n'}, "src/ir/prog/p.c:1: ir/prog must not see src/ir/graph/graph.h"),
    ({"chat/chat.h": "", "tokenizer/t.c": '#include "chat/chat.h"\n'}, "src/tokenizer/t.c:1: tokenizer must not see src/chat/chat.h"),
    ({"lang/run/lang_value.h": "", "lang/syntax/s.c": '#include "lang/run/lang_value.h"\n'}, "src/lang/syntax/s.c:1: lang/syntax must not see src/lang/run/lang_value.h"),
    ({"front/compose/compose.h": "", "front/onnx/o.c": '#include "front/compose/compose.h"\n'}, None),
    ({"front/onnx/onnx.h": "", "front/compose/compose_norm.c": '#include "front/onnx/onnx.h"\n'},
     "src/front/compose/compose_norm.c:1: front/compose must not see src/front/onnx/onnx.h"),
    ({"io/wire.h": "", "front/compose/compose_norm.c": '#include "io/wire.h"\n'},
     "src/front/compose/compose_norm.c:1: front/compose must not see src/io/wire.h"),
    ({"front/onnx/onnx.h": "", "front/reader.h": "", "api/s.c": '#include "front/reader.h"\n#include "front/onnx/onnx.h"\n'},
     "src/api/s.c:2: api must not see src/front/onnx/onnx.h"),
    ({"ir/graph/graph.h": "", "back/graph.h": "", "back/b.c": '#include "back/graph.h"\n'}, None),
    ({"ir/graph/graph.h": "", "back/c/c.h": '#include "../../ir/graph/graph.h"\n', "back/c/e.c": '#include "c.h"\n'},
     "src/back/c/e.c:1: back must not see src/ir/graph/graph.h through src/back/c/c.h"),
    ({"base/base_own.h": "", "api/api_internal.h": "", "cli/c.c": '#include "base/base_own.h"\n'}, "src/cli/c.c:1: cli must not see src/base/base_own.h"),
    ({"base/b.c": "#include <zlib.h>\n"}, "src/base/b.c:1: <zlib.h> is not of libc or libm"),
    ({"base/b.c": '#include "gone.h"\n'}, "src/base/b.c:1: gone.h does not exist"),
    ({"ir/x.c": 'void f(void) {\n  abort();\n}\n'}, "src/ir/x.c:2: the library calls abort"),
    ({"new/x.c": ""}, "src/new/x.c: the rule does not know the folder new"),
]


def plant(top, tree):
    for name, text in tree.items():
        path = os.path.join(top, "src", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)


def planted(env):
    """The rule finds these violations and nothing else."""
    top = env.scratch("layering")
    for tree, want in PLANTED:
        shutil.rmtree(top)
        plant(top, tree)
        got = [x for x in rule.places(top) if not x.startswith("src/back/c/c.h:")]
        if got != ([want] if want else []):
            raise Fail(f"{list(tree)}: found {got}, expected {want}")


# Files of a small tree, and the line of the call that must be found; 0: none.
CREATING = [
    ({"front/a.c": "static Val f(Graph *g) {\n  return mk_add(g, mk_neg(g, x), y);\n}\n"}, 0),
    ({"front/a.c": "static Val f(Graph *g) {\n  return mk_add(g, mk_neg(g, x),\n                mk_abs(g, y));\n}\n"}, 2),
    ({"ir/b.c": "Val make(Graph *g) {\n  return graph_add(g, 0);\n}\n", "front/a.c": "static Val f(Graph *g) {\n  Val v;\n  h(make(g), 1, make(g));\n}\n"}, 3),
    ({"ir/b.c": "static Val make(Graph *g) {\n  return graph_add(g, 0);\n}\n", "front/a.c": "static Val f(Graph *g) {\n  h(make(g), make(g));\n}\n"}, 0),
]


def creating(env):
    """The order of creation of two nodes does not depend on the compiler."""
    top = env.scratch("creation")
    for tree, line in CREATING:
        shutil.rmtree(top)
        plant(top, tree)
        got = [x.split(":")[1] for x in creation.places(top)]
        if got != ([str(line)] if line else []):
            raise Fail(f"{tree}: found in line {got}, expected {line}")
    wrong = creation.places(ROOT)
    if wrong:
        raise Fail("\n  ".join([f"{len(wrong)} places"] + wrong[:20]))


def formatting():
    need("clang-format")
    files = list(sources(".c", ".h", tops=("src", "test", "tools", "bench")))
    got = run(["clang-format", "--dry-run", "-Werror", *files], 120, cwd=ROOT)
    if got.rc:
        names = sorted({line.split(":")[0] for line in got.text().splitlines() if "error:" in line})
        raise Fail(f"`make format` changes {len(names)} files: {' '.join(names[:12])}")


def look_at(path, nodes):
    need("clang-tidy")
    depth = (f"--extra-arg={x}" for x in ("-Xclang", "-analyzer-config", "-Xclang", f"max-nodes={nodes}"))
    got = run(["clang-tidy", "--quiet", path, *depth, "--", "-std=c11", "-D_GNU_SOURCE", "-Isrc", "-Ibuild"], 300, cwd=ROOT)
    if got.rc:
        found = [x for x in got.out.decode().splitlines() if "error:" in x or "warning:" in x]
        raise Fail("\n  ".join([f"{len(found)} findings"] + found[:10] + ([] if found else [tail(got.text())])))


def tidy(env, path, key):
    digest = hashlib.sha256((key + read(path)).encode()).hexdigest()
    stamp = os.path.join(env.scratch("tidy"), path.replace("/", "_"))
    if os.path.exists(stamp) and open(stamp).read() == digest:
        return
    look_at(path, NODES)
    with open(stamp, "w") as f:
        f.write(digest)


def defined(text):
    """The type names that a C text defines."""
    text = re.sub(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', "", text, flags=re.S)
    for found in re.finditer(r"^\s*typedef\b", text, re.M):
        end, depth = found.end(), 0
        while text[end] != ";" or depth:
            depth += (text[end] == "{") - (text[end] == "}")
            end += 1
        what = re.sub(r"\{.*\}", "", text[found.end():end], flags=re.S)
        function = re.search(r"\(\s*\*?\s*(\w+)\s*\)\s*\(", what)
        yield function.group(1) if function else re.findall(r"\w+", re.sub(r"\[[^\]]*\]|\(.*\)", "", what))[-1]


def types():
    """Exported type names are unique: no other file defines a type that a header defines."""
    planted = "typedef u32 A; /* typedef B */\ntypedef struct C {\n  int x;\n} D;\ntypedef VEC(u32) E;\ntypedef int F(G *g);\ntypedef int (*H)(G *g);\n"
    got = list(defined(planted))
    if got != ["A", "D", "E", "F", "H"]:
        raise Fail(f"types that are found where A, D, E, F and H are: {got}")
    where = {}
    for path in sources(".c", ".h", tops=("src",)):
        for name in defined(read(path)):
            where.setdefault(name, []).append(path)
    twice = [f"{name}: {' '.join(paths)}" for name, paths in sorted(where.items())
             if len(paths) > 1 and any(path.endswith(".h") for path in paths)]
    if twice:
        raise Fail("\n  ".join([f"{len(twice)} exported types share their name"] + twice))


# Violations that test/prose.py must find: comment (True), message (False) or text, and the report; none: no violation.
PROSE = [
    ("/* Where it goes. */", True, "opens with Where"), ("/* The place it goes to. */", True, None), ('"For the labels"', False, "opens with For"),
    ("one thread waits behind another", None, "banned word"), ("the same as above", None, "banned word"), ("a file of its own", None, "banned word"), ("/* there\n * is no room */", True, '"is no"'),
    ("it is no larger", None, None), ("if (s->flags & SF_hold)", None, "renamed"), ("/* The flag SF_pin holds it. */", True, None),
]


def prose_rules():
    """Every rule finds its example, and nothing in a plain sentence."""
    for text, comment, want in PROSE:
        got = list(rules.words("x.c", 1, text, comment))
        if len(got) != (want is not None) or (want and want not in got[0]):
            raise Fail(f"{text!r}: found {got}, expected {want}")
    for text, count in (('fail(c, ERR_usage, loc, "bad value");', 1), ('fail(c, ERR_usage, loc, "expected a value");', 0), ('fail(c, ERR_usage, loc, "%s", why);', 0)):
        if len(list(rules.short_messages("x.c", text))) != count:
            raise Fail(f"{text}: expected {count} violations")
    for row, count in (("One sentence. Another one.", True), ("A file of 3.5 MB, e.g. A.", False), ("1. The first step.", False)):
        if bool(rules.two_sentences(row)) != count:
            raise Fail(f"{row}: expected {count}")


def prose(env):
    """Comments, messages, help and documents follow the writing rules that a script can check."""
    env.need_ingot()
    got = run(["python3", "test/prose.py"], 60, cwd=ROOT)
    if got.rc:
        raise Fail(tail(got.text(), 12))


def attrs(env):
    """The table of attributes is what its script writes."""
    got = run([env.need_python(), "tools/mkattrs.py", "--check"], 60, cwd=ROOT)
    if got.rc:
        raise Fail(tail(got.text(), 3))


def tests(env):
    out = [Test("lint/layering", layering), Test("lint/layering-planted", lambda: planted(env)),
           Test("lint/creation", lambda: creating(env)),
           Test("lint/format", formatting), Test("lint/types", types), Test("lint/prose", lambda: prose(env)), Test("lint/prose_rules", prose_rules),
           Test("lint/attrs", lambda: attrs(env))]
    shared = [".clang-tidy", *sources(".h", ".def", tops=("src",))]
    key = "".join(hashlib.sha256(read(p).encode()).hexdigest() for p in shared)
    return out + [Test("lint/tidy " + p, lambda p=p: tidy(env, p, key), cost=4) for p in sources(".c", tops=("src",))]
