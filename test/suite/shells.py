"""Completions: the script of `ingot completions SHELL` lets the shell complete verbs, options and values.

bash is on every machine; zsh and fish are tested where they are installed.
"""
import os
import pty
import re
import select
import shutil
import subprocess
import time

from lib.core import Fail, Skip, Test, run, want
from suite.cli import Cli

PATIENCE = 60
# typed text: completions that must appear, completions that must not
TYPED = {"ingot insp": (["inspect"], []), "ingot c": (["compile", "check", "completions"], ["bench"]), "ingot run m.onnx --eng": (["--engine"], []),
         "ingot run m.onnx --engine ": (["vm", "interp", "ref", "onnxruntime"], ["--engine"]), "ingot compile m.onnx --optimize-for ": (["time", "ram", "size"], []),
         "ingot compile m.onnx --optimize-for=r": (["ram"], []), "ingot opt m.onnx --stop ": (["canon", "fuse", "lower"], []),
         "ingot bench m.onnx --engine ": (["vm", "jit", "c"], ["ref64"]), "ingot completions ": (["bash", "zsh", "fish"], []), "ingot export m.onnx --project ": (["cmake", "make", "zephyr", "arduino", "rust"], []), "ingot inspect mod": (["model.onnx"], []),
         "ingot run m.onnx --output res": (["result.npz"], []), "ingot inspect m.onnx --ht": (["--html"], []), "ingot tokenize m.onnx --sp": (["--special"], ["--split"])}


def script(c, shell):
    got = c.run("completions", shell)
    c.save("ingot." + shell, got.out)
    for name in ("model.onnx", "result.npz"):
        c.save(name, b"")
    os.makedirs(c.path("bin"), exist_ok=True)
    if not os.path.lexists(c.path("bin/ingot")):
        os.symlink(c.env.ingot, c.path("bin/ingot"))
    return {**os.environ, "PATH": c.path("bin") + ":" + os.environ["PATH"], "TERM": "dumb", "HOME": c.dir, "LC_ALL": "C.UTF-8"}


def judge(line, said):
    """The screen of a terminal after this line and the completion key."""
    there, absent = TYPED[line]
    said = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[\x07\x08\r]", "", said)
    rest = said.split(line, 1)[1] if line in said else said
    behind = line.split(" ")[-1] + rest.replace(line, "")
    for word in there:  # a shell that is not ready echoes the keys, and prints the line again later
        want(any(re.search(rf"(?<![\w-]){re.escape(word)}", text) for text in (behind, rest)), f"`{line}` and TAB: no {word}: {said[-400:]!r}")
    for word in absent:
        want(not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", behind), f"`{line}` and TAB: {word}: {said[-400:]!r}")


def bash(c):
    """Keys that a person presses, at a terminal."""
    if not shutil.which("bash"):
        raise Skip("no bash")
    ours, theirs = pty.openpty()
    p = subprocess.Popen(["bash", "--norc", "--noprofile", "-i"], cwd=c.dir, env={**script(c, "bash"), "PS1": "> "}, stdin=theirs, stdout=theirs, stderr=theirs,
                         start_new_session=True)
    os.close(theirs)

    def until(mark):
        end, said = time.monotonic() + PATIENCE, b""
        while not re.search(mark, said):
            if time.monotonic() > end or not select.select([ours], [], [], PATIENCE)[0]:
                raise Fail(f"bash does not answer: {said[-300:]}")
            said += os.read(ours, 65536)
        return said.decode(errors="replace")
    try:
        for option in ("show-all-if-ambiguous on", "enable-bracketed-paste off", "page-completions off", "completion-query-items 0"):
            os.write(ours, f"bind 'set {option}'\n".encode())
        os.write(ours, b". ./ingot.bash; echo rea''dy\n")
        until(rb"\nready")
        for i, line in enumerate(TYPED):
            os.write(ours, line.encode() + b"\t")
            time.sleep(0.1)
            os.write(ours, b"\x15echo en''d%d\n" % i)  # discards the current line
            judge(line, until(rb"\nend%d" % i))
    finally:
        p.kill()
        p.wait()
        os.close(ours)
    got = run(["bash", "-n", "ingot.bash"], 30, cwd=c.dir)
    want(got.rc == 0 and not got.text(), f"bash -n: {got.text()}")


def fish(c):
    if not shutil.which("fish"):
        raise Skip("no fish: Debian's package has it")
    env = script(c, "fish")
    for line, (there, absent) in TYPED.items():
        got = run(["fish", "--no-config", "-c", f"source ingot.fish; complete -C '{line}'"], PATIENCE, cwd=c.dir, env=env)
        words = [x.split("\t")[0] for x in got.out.decode().splitlines()]
        words += [w.split("=", 1)[-1] for w in words]
        want(got.rc == 0 and set(there) <= set(words) and not set(absent) & set(words), f"`{line}`: {words}, {got.text()}")


# A pseudo-terminal in which keys are pressed.
ZSH = """zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z 'PS1=; fpath=($PWD/fn $fpath); autoload -Uz compinit; compinit -u -d ./dump; LISTMAX=10000; setopt no_auto_menu no_list_beep; bindkey "^I" complete-word; echo rea""dy'
zpty -r z text '*ready*'
for line in "$@"; do
  zpty -w -n z "$line"$'\\t'
  sleep 0.4
  zpty -w -n z $'\\x15echo en""d\\n'
  zpty -r z text '*'$'\\n''end*'
  print -r -- "@$line@$text"
done
"""


def zsh(c):
    if not shutil.which("zsh"):
        raise Skip("no zsh: Debian's package has it")
    env = script(c, "zsh")
    os.makedirs(c.path("fn"), exist_ok=True)
    shutil.copy(c.path("ingot.zsh"), c.path("fn/_ingot"))
    c.save("drive.zsh", ZSH.encode())
    got = run(["zsh", "-f", "drive.zsh", *TYPED], PATIENCE, cwd=c.dir, env=env)
    said = re.split(r"@(ingot [^@\n]*)@", got.out.decode(errors="replace"))
    want(len(said) == 2 * len(TYPED) + 1, f"zsh: {got.text()} {said}")
    for line, text in zip(said[1::2], said[2::2]):
        judge(line, text)


def words(c):
    c.run("completions", "tcsh", code=2, text="expected bash, zsh or fish")
    c.run("completions", code=2)


def tests(env):
    return [Test(f"shells/{fn.__name__}", lambda fn=fn: fn(Cli(env, "shells_" + fn.__name__)), cost=3) for fn in (bash, fish, zsh, words)]
