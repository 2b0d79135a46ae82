"""The documents are true: shown commands print the shown text, links exist, every operator row is described.

A block that opens with ```console has commands, lines `$ COMMAND`, each followed by its output.
They run in order in a folder that looks like the repository root (with links to everything in it), so a command may use files of
an earlier one.
Times (`1.5 ms`) may differ; a last line `...` stands for the rest.
RUNS lists the programs that are run; `make run` runs as `ingot demo`, and `python3 FILE.py` with the package of python/ if the
test packages are installed.
Any other command must be shown without output.
A command without output must name the file it writes, because a filter that finds nothing would go unnoticed.
If node, cmake, a board compiler or simulator, or a tool that ingot names is not installed, the rest of the block is skipped.
A block that opens with ```c, ```charl, ```js or ```python, and a comment with a file name, is written to that file for the
commands after it.
A block that opens with ```c FILE is a quotation: FILE must contain it, except for indentation.
--bless rewrites the output.
"""
import os
import re
import shutil
from lib import npy
from lib.core import ROOT, Fail, Test, explain, must, run, tail

CHECK = "* !docs/table"

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)
PROGRAM = re.compile(r"^```c\n(/\* (\w+\.c)\b.*?)^```$", re.M | re.S)
SCRIPT = re.compile(r"^```(?:charl|js)\n(// (\w+\.(?:ch|mjs))\b.*?)^```$", re.M | re.S)
PYTHON = re.compile(r"^```python\n(# (\w+\.py)\b.*?)^```$", re.M | re.S)
QUOTE = re.compile(r"^ *```c (\S+)\n(.*?)^ *```$", re.M | re.S)
KNOWN = {"make run": "ingot demo"}
RUNS = re.compile(r"(build/)?ingot |\./\w+\b|cc |arm-none-eabi-gcc |qemu-system-arm |mkdir |node |cmake |python3 \w+\.py\b")
OPTIONAL = ("node", "cmake", "arm-none-eabi-gcc", "qemu-system-arm")
MISSING = b"which is not installed (Debian"
WRITES = re.compile(r"mkdir |[^|]* (-o|--output|>)[ =]?\S+[^|]*$")  # after a pipe, only files named by the command itself count
SHELL = 'ingot() { "$INGOT_PROGRAM" "$@"; }; '


def documents():
    out = []
    for folder, names, files in os.walk(ROOT):
        names[:] = [n for n in names if not n.startswith((".", "build"))]
        out += [os.path.relpath(os.path.join(folder, f), ROOT) for f in files if f.endswith(".md")]
    return sorted(out)


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as f:
        return f.read()


def mirror(env, name):
    """A fresh folder with links to everything in the repository, and the programs of the document."""
    folder = env.scratch("docs", name.replace("/", "_"))
    shutil.rmtree(folder)
    os.makedirs(folder)
    for entry in os.listdir(ROOT):
        if not entry.startswith("."):
            os.symlink(os.path.join(ROOT, entry), os.path.join(folder, entry))
    for m in (x for form in (PROGRAM, SCRIPT, PYTHON) for x in form.finditer(read(name))):
        with open(os.path.join(folder, m[2]), "w", encoding="utf-8") as f:
            f.write(m[1])
    return folder


def commands(block):
    """Returns [(command, shown output)] of one block."""
    out = []
    for line in block.splitlines(keepends=True):
        if line.startswith("$ "):
            out.append([line[2:].strip(), ""])
        elif out:
            out[-1][1] += line
    return out


def printed(env, folder, command):
    command = KNOWN.get(command, command)
    if not RUNS.match(command):
        return ""
    if command.split()[0] in OPTIONAL and not shutil.which(command.split()[0]):
        return None
    if command.startswith("python3 "):
        command = f'PYTHONPATH=python INGOT_LIBRARY=build/libingot.so "{env.python}" ' + command.split(None, 1)[1]
    script = SHELL + re.sub(r"(^|[|;&] *)build/ingot ", r"\1ingot ", command)
    got = run(["sh", "-c", script], 60, cwd=folder, env={"INGOT_PROGRAM": env.ingot, "LC_ALL": "C.UTF-8", "NO_COLOR": "1"})
    if got.rc == 5 and MISSING in got.err:
        return None
    if got.timed_out or got.rc not in (0, 1, 2, 3, 4):
        raise Fail(f"`{command}`: {explain(got)}: {tail(got.text(), 3)}")
    return (got.out + got.err).decode("utf-8", "replace")


def alike(old, new):
    """Are they equal, except for times, trailing spaces (editors remove them) and `...`?"""
    new = re.sub(r"^ingot: .* \.\.\. \d+ s\n", "", new, flags=re.M)  # progress, if the machine is busy
    old, new = (re.sub(r" +$", "", re.sub(r" *[0-9.]+ ms\b", " T ms", x), flags=re.M) for x in (old, new))
    return old == new or old.endswith("...\n") and new.startswith(old[:-4])


def finds_nothing(command, text):
    return bool(RUNS.match(KNOWN.get(command, command))) and not text.strip() and not WRITES.match(command)


def shown(env, name):
    env.need_ingot()
    text, wrong, empty, folder = read(name), [], [], mirror(env, name)
    idle = [m[2] for form, verb in ((PROGRAM, r"\S*cc"), (PYTHON, "python3")) for m in form.finditer(text)
            if not re.search(rf"^\$ {verb} .*\b{m[2]}\b", text, re.M)]
    if idle:
        raise Fail("no command takes " + " ".join(idle))

    def replace(m):
        block, new = "", ""
        for command, old in commands(m[1]):
            new = printed(env, folder, command) if new is not None and (env.python or not command.startswith("python3 ")) else None
            if new is None:
                block += f"$ {command}\n{old}"
                continue
            if finds_nothing(command, new):
                empty.append(command)
            if alike(old, new):
                new = old
            else:
                wrong.append(command)
            block += f"$ {command}\n" + re.sub(r" +$", "", new, flags=re.M)
        return f"```console\n{block}```"
    fresh = BLOCK.sub(replace, text)
    if empty:
        raise Fail("prints nothing: " + "; ".join(empty))
    if wrong and env.bless:
        with open(os.path.join(ROOT, name), "w", encoding="utf-8") as f:
            f.write(fresh)
    elif wrong:
        raise Fail("prints something else now (`make docs` rewrites it): " + "; ".join(wrong))


def table(env):
    """The commands in the table of README.md work with files of these names; other suites test language models."""
    folder = env.scratch("docs", "table")
    shutil.rmtree(folder)
    os.makedirs(folder)
    shutil.copy(os.path.join(ROOT, "models", "digits.onnx"), os.path.join(folder, "model.onnx"))
    arrays = {"image": npy.Array("f32", (16, 1, 8, 8), [(i * 7 % 17) / 16 for i in range(1024)])}
    npy.save_npz(os.path.join(folder, "examples.npz"), arrays)
    npy.save_npz(os.path.join(folder, "train.npz"), {**arrays, "label": npy.Array("i64", (16,), [i % 10 for i in range(16)])})
    with open(os.path.join(folder, "program.ch"), "w") as f:
        f.write('print("fine")\n')
    rows = re.findall(r"^\| [^|]+ \| `(ingot [^|`]+)` \|", read("README.md"), re.M)
    tried = [row for row in rows if ".gguf" not in row]
    if len(tried) < 8:
        raise Fail(f"README.md has no table of commands: {rows}")
    for row in tried:
        got = run(["sh", "-c", SHELL + row], 120, cwd=folder, env={"INGOT_PROGRAM": env.need_ingot(), "NO_COLOR": "1"})
        named = re.search(r"(?:-o|--html) (\S+)", row)
        if not (got.rc == 5 and MISSING in got.err) and (got.rc or named and not os.path.exists(os.path.join(folder, named[1]))):
            raise Fail(f"`{row}`: {explain(got)}: {tail(got.text(), 3)}")


def heading(line):
    """The anchor of a heading, as common viewers make it."""
    return re.sub(r"[^\w\- ]", "", line.lower()).strip().replace(" ", "-")


def links(name):
    text = re.sub(r"```.*?```", "", read(name), flags=re.S)
    missing = []
    for path, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", text):
        if "://" in path:
            continue
        target = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
        if not os.path.exists(os.path.join(ROOT, target)):
            missing.append(path)
        elif anchor and anchor not in {heading(x) for x in re.findall(r"^#+ (.*)$", read(target), re.M)}:
            missing.append(f"{path}#{anchor}")
    if missing:
        raise Fail("links to what is not there: " + " ".join(missing))


def paths(name):
    """Files that a document mentions in `code` exist."""
    found = re.findall(r"`((?:src|test|docs|tools|bench|models)/[\w./-]+)`", read(name))
    missing = sorted({x for x in found if not os.path.exists(os.path.join(ROOT, x))
                      and not re.search(r"\b(NAME|FOLDER|PASS)\b", x)})  # placeholders for the user's names
    if missing:
        raise Fail("mentions files that are not there: " + " ".join(missing))


def quotes(name):
    def squeeze(text):
        return re.sub(r"\s+", " ", text).strip()
    wrong = [m[1] for m in QUOTE.finditer(read(name)) if squeeze(m[2]) not in squeeze(read(m[1]))]
    if wrong:
        raise Fail("quotes what is no longer there: " + " ".join(wrong))


def manual(env):
    """The man page has every verb and option of --help."""
    env.need_ingot()
    page = read("docs/ingot.1").replace("\\-", "-")
    verbs = re.findall(r"^  (\w+) ", run([env.ingot, "--help"], 20).out.decode(), re.M)
    wanted = {f".B {v}" for v in verbs}
    for verb in verbs:
        wanted |= set(re.findall(r"--[\w-]+", run([env.ingot, verb, "--help-all"], 20).out.decode()))
    missing = sorted(w for w in wanted if w not in page)
    if missing or len(verbs) < 5:
        raise Fail("docs/ingot.1 lacks " + " ".join(missing))


def tables():
    """The tables of docs/operators.md and of types in docs/ir.md equal the .def files."""
    got = run(["python3", os.path.join(ROOT, "tools", "opdoc.py"), "--check"], 20)
    if got.rc:
        raise Fail(got.text().strip())


def grammar():
    """The grammars in docs/ir.md have all words of the grammars above the printers."""
    def words(text):
        return set(re.findall(r'"([^"\s]+)"', text))
    blocks = re.findall(r"^```\n((?:graph|prog) .*?)^```$", read("docs/ir.md"), re.M | re.S)
    source = [re.search(r"/\*.*?\*/", read(f"src/ir/{n}/{n}_text.c"), re.S)[0] for n in ("graph", "prog")]
    if len(blocks) != 2:
        raise Fail("docs/ir.md has no grammar of graphs and of programs")
    lacks = sorted(words("".join(source)) - words("".join(blocks)) - {"#"})  # words describe comments
    if lacks:
        raise Fail("the grammars in docs/ir.md lack " + " ".join(lacks))


def suites():
    """The map in test/README.md has every suite."""
    rows = "".join(x.split("|")[1] for x in read("test/README.md").splitlines() if x.startswith("| `"))
    named, there = set(re.findall(r"`(\w+)`", rows)), {x[:-3] for x in os.listdir(os.path.join(ROOT, "test", "suite")) if x.endswith(".py")}
    if named != there | {"golden", "exec", "error"}:
        raise Fail("test/README.md: " + ", ".join(sorted(named ^ (there | {"golden", "exec", "error"}))) + " is in the table or in test/suite alone")


def silence():
    """Commands for which finds_nothing reports no output."""
    for command, text, bad in (("ingot opt a.ing | sed -n '/x/,$p'", "", True), ("ingot opt a.ing --output b.ing", "", False),
                               ("ingot opt a.ing -o b.ing | grep x", "\n", True), ("ingot ops", " \n", True), ("ingot ops", "Conv\n", False),
                               ("./net", "", True), ("./net > out", "", False), ("cc a.c -o a", "", False), ("make -j", "", False), ("make run", "", True)):
        if finds_nothing(command, text) != bad:
            raise Fail(f"`{command}` that prints {text!r}: taken for {'right' if bad else 'wrong'}")


def interface(env):
    """docs/api.md has every function and macro of generated headers; numbers in names may differ."""
    env.need_ingot()
    page, folder, found = read("docs/api.md"), env.scratch("docs", "interface"), set()
    with open(os.path.join(folder, "s.ing"), "w") as f:
        f.write('graph sym n in 1..8 (%a "image": f32[n,4], %h "h": f32[4]) {\n  %s: f32[4] = reduce_sum(%a) {axes = [0], keep = 0}\n'
                '  %y: f32[4] = add(%s, %h)\n  %z: f32[n,4] = add(%a, %h)\n  return %z "logits", %y "y"\n}\n')
    for args in (["s.ing", "--state", "h=y", "--threads", "2", "--profile", "--march", "avx2"], ["s.ing", "--caller", "--weights", "pointer"]):
        must([env.ingot, "compile", os.path.join(folder, args[0]), *args[1:], "--name", "net", "--quiet", "-o", os.path.join(folder, "net.c")], "compile")
        for end in ".h", ".c":
            with open(os.path.join(folder, "net" + end)) as f:
                text = f.read()
            found |= set(re.findall(r"#define (NET_\w+)|(NET_\w+) = ", text) if end == ".h" else [])
            found |= set(re.findall(r"^(?:\w[\w ]* \**)(net_\w+)(?:\(.*\)|\[\]);()", text, re.M))
    names = {re.sub(r"(INPUT|OUTPUT|SIZE)\d+_", r"\g<1>0_", a or b) for a, b in found}
    for path, prefix in (("src/api/lm_c.c", "m"), ("src/driver/train/train_emit_c.c", "step")):
        text = read(path)
        text = text[text.index("declarations[]"):]
        names |= {f"{prefix}_{n}" for n in re.findall(r"\$_(\w+)\(", text[:text.index(";\n\n")])}
        names |= {f"{prefix.upper()}_{n}" for n in re.findall(r"#define %s_(\w+)", text) if n != "CHAT_"}
    missing = sorted(n for n in names if not re.search(rf"\b{n}\b", page) and not re.search(rf"`_{n.rpartition('_')[2]}`", page) and not n.startswith(("NET_INPUT_", "NET_OUTPUT_", "NET_SIZE_")))
    if missing or len(names) < 50:
        raise Fail(f"{len(names)} names; docs/api.md lacks {' '.join(missing)}")


def tests(env):
    out = [Test("docs/interface", lambda: interface(env)), Test("docs/grammar", grammar), Test("docs/manual", lambda: manual(env)), Test("docs/tables", tables),
           Test("docs/silence", silence), Test("docs/suites", suites), Test("docs/table", lambda: table(env), cost=15)]
    for name in documents():
        out.append(Test(f"docs/links {name}", lambda n=name: links(n)))
        out.append(Test(f"docs/paths {name}", lambda n=name: paths(n)))
        out.append(Test(f"docs/quotes {name}", lambda n=name: quotes(n)))
        if BLOCK.search(read(name)):
            out.append(Test(f"docs/commands {name}", lambda n=name: shown(env, n)))
    return out
