"""ingot destroys no file of the user and leaves no temporary file: it never writes a file that it reads, and refuses an unwritable
output before it works.

Signals leave no folders, and a full disk has an exit code.
"""
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import threading
import time
import zipfile
import zlib
from lib import families, npy, onnxfile
from lib.core import MINDFUL, ROOT, Fail, Skip, Test, run, want
from lib.onnxfile import FLOAT, chunk, number
from suite.cli import MODEL, Cli, image

CHECK = "*"


def external(location):
    """y = x + w, with the four floats of w in a separate file."""
    g = onnxfile.Graph()
    g.parts.append(chunk(5, number(1, 4) + number(2, FLOAT) + chunk(8, "w") + chunk(13, chunk(1, "location") + chunk(2, location)) + number(14, 1)))
    g.output(g.node("Add", [g.input([4], name="x"), "w"], ["y"]), [4])
    return onnxfile.model(g)


def snapshot(folder):
    out = {}
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        out[name] = os.readlink(path) if os.path.islink(path) else open(path, "rb").read() if os.path.isfile(path) else snapshot(path)
    return out


def refused(c, *args, names=()):
    """The command says what would be overwritten, and changes nothing."""
    before = snapshot(c.dir)
    text = c.run(*args, code=2, text="would be replaced by the output, but is read").text()
    for name in names:
        want(name in text, f"{' '.join(args)}: {name} is not named: {text}")
    want(snapshot(c.dir) == before, f"{' '.join(args)} changed {c.dir}: {sorted(os.listdir(c.dir))}")


def model(c):
    """Neither the output nor files next to it overwrite the model, under any name."""
    for name in ("net.h", "net.bin", "net.c"):
        shutil.copy(MODEL, c.path(name))
    os.symlink("net.h", c.path("soft.h"))
    os.link(c.path("net.h"), c.path("hard.h"))
    refused(c, "compile", "net.h", "-o", "net.c", names=["net.h"])
    refused(c, "compile", "net.c", "-o", "./net.c", names=["net.c", "./net.c"])
    refused(c, "net.h", "-o", "soft.c", names=["net.h", "soft.h"])
    refused(c, "compile", "soft.h", "-o", "net.c", names=["net.h", "soft.h"])
    refused(c, "compile", "net.h", "-o", "hard.c", names=["net.h", "hard.h"])
    for how in ("file", "pointer"):
        refused(c, "compile", "net.bin", "-o", "net.c", "--weights", how, names=["net.bin"])
    c.run("compile", "net.bin", "-o", "inline.c")
    refused(c, "build", "net.h", "-o", "net.so", names=["net.h"])
    refused(c, "build", "net.bin", "-o", "net.o", "--weights", "pointer", names=["net.bin"])
    shutil.copy(MODEL, c.path("prog"))
    refused(c, "build", "prog", "-o", "prog", names=["prog"])
    refused(c, "opt", "net.h", "-o", "soft.h", names=["net.h", "soft.h"])
    refused(c, "opt", "net.bin", "-o", "net", "--weights-file", names=["net.bin"])
    refused(c, "verify", "net.h", "--bisect", "-o", "hard.h", "--engine", "interp", names=["net.h", "hard.h"])


def data(c):
    """Nor other files that were read: external data, inputs, measured tile sizes, constants next to a text."""
    with open(c.path("net.onnx"), "wb") as f:
        f.write(external("net.bin"))
    with open(c.path("net.bin"), "wb") as f:
        f.write(struct.pack("<4f", 1, 2, 3, 4))
    npy.save(c.path("x.npy"), npy.Array("f32", (4,), [0.0] * 4))
    refused(c, "compile", "net.onnx", "-o", "net.c", "--weights", "file", names=["net.bin"])
    refused(c, "build", "net.onnx", "-o", "net.a", "--weights", "pointer", names=["net.bin"])
    c.run("compile", "net.onnx", "-o", "net.c", "--weights", "inline")
    c.run("run", "net.onnx", "--input", "x=@x.npy", "-o", "in.npz")
    shutil.copy(c.path("in.npz"), c.path("y.npz"))
    with open(c.path("array.h"), "wb") as f:
        f.write(open(c.path("x.npy"), "rb").read())
    refused(c, "compile", "net.onnx", "-o", "array.c", "--input", "x=@array.h", names=["array.h"])
    os.makedirs(c.path("set"))
    c.run("run", "net.onnx", "--input", "x=@x.npy", "-o", "set")
    os.rename(c.path("set/output_0.pb"), c.path("set/input_0.pb"))
    os.symlink("input_0.pb", c.path("set/output_0.pb"))
    refused(c, "run", "net.onnx", "--data", "set", "-o", "set", names=["input_0.pb", "output_0.pb"])
    with open(c.path("t.h"), "w") as f:
        f.write("ingot tune 1\n")
    refused(c, "compile", "net.onnx", "--march", "sse2", "--tuned", "t.h", "-o", "t.c", names=["t.h"])
    c.run("opt", MODEL, "-o", "side.ing", "--weights-file", "--stop=none")
    os.link(c.path("side.ing.bin"), c.path("other.bin"))
    refused(c, "compile", "side.ing", "-o", "other.c", "--weights", "file", names=["other.bin", "side.ing.bin"])
    out = c.run("run", "net.onnx", "--input", "x=@x.npy").out
    want(b" 1 2 3 4" in out, f"the model computes {out}")


def before_work(c):
    """A command that must fail does so before the model is read: here the model does not exist."""
    with open(c.path("plain"), "w"):
        pass
    for args in (["compile", "absent.onnx", "-o", "plain/net.c"], ["build", "absent.onnx", "-o", "plain/net.so"],
                 ["opt", "absent.onnx", "-o", "plain/net.ing"], ["run", "absent.onnx", "-o", "plain/y.npz"],
                 ["verify", "absent.onnx", "--bisect", "-o", "plain/part.ing"]):
        c.run(*args, code=5, text="plain/")
    os.makedirs(c.path("folder.c"))
    c.run("compile", "absent.onnx", "-o", "folder.c", code=5, text="is a directory")
    c.run("build", "absent.onnx", "-o", "net.so", "--cc", "no-such-compiler", code=5, text="'no-such-compiler' cannot be started")
    slow = os.path.join(ROOT, "test", "docs", "tour.onnx")
    for args in (["bench", slow, "--cc", "no-such-compiler"], ["build", slow, "-o", "t", "--tune", "--cc", "no-such-compiler"],
                 ["compile", slow, "--march", "native", "--tune", "--cc", "/nowhere/cc"]):
        want(c.run(*args, code=5, text="cannot be started").text().count("cannot be started") == 1, f"{args}: said twice")
    got = c.run("run", MODEL, "--engine", "c", code=5, text="cannot be started", env={"CC": "no-such-compiler"}).text()
    want(all(x in got for x in ("Debian's package gcc", "--cc", "--engine jit or vm", "--backend llvm")), f"no way to go on: {got}")
    got = c.run("bench", MODEL, "-d", "batch=1", "--seconds", "0.01", text="instead of c", env={"CC": "no-such-compiler"})
    rows = [x.split()[0] for x in got.out.decode().splitlines()]
    want("vm" in rows and "c" not in rows and "Debian's package gcc" in got.text(), f"{rows} {got.text()}")
    for name in ("q.dll", "q.exe", "q.dylib", "q.lib", "q.c", "q.onnx", "q.js", "dir/"):
        c.run("build", MODEL, "-o", name, code=2, text=name)
    want(sorted(os.listdir(c.dir)) == ["folder.c", "plain"], f"left behind: {sorted(os.listdir(c.dir))}")


PATIENCE = 120  # seconds that a busy machine may take for what takes no time on others


def started(path, p):
    """The number that the compiler writes when it has a child process."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and p.poll() is None:
        if os.path.exists(path) and (text := open(path).read()).endswith("\n"):
            return int(text)
        time.sleep(0.01)
    p.kill()
    raise Fail(f"the compiler was not started; ingot says {p.communicate()[1]}")


def signals(c):
    """A signal ends the child processes and leaves no folder; its sender sees that the signal ended ingot."""
    tmp, child = c.path("tmp"), c.path("child")
    os.makedirs(tmp)
    with open(c.path("slowcc"), "w") as f:  # a compiler with a child process
        f.write(f"#!/bin/sh\ncase \"$*\" in *--version*) echo slow; exit;; esac\nsleep 600 & echo $! >{child}; wait\n")
    os.chmod(c.path("slowcc"), 0o755)
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        for args in (["build", MODEL, "-o", "net"], ["bench", MODEL, "--engine", "c"], ["build", MODEL, "-o", "net", "--tune=tuned"]):
            if os.path.exists(child):
                os.unlink(child)
            p = subprocess.Popen([*MINDFUL, c.env.ingot, *args, "--cc", c.path("slowcc"), "--march", "sse2"], cwd=c.dir, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": tmp}, start_new_session=True)
            pid = started(child, p)
            want(os.listdir(tmp), f"{args}: no temporary folder")
            p.send_signal(sig)
            _, said = p.communicate(timeout=PATIENCE)
            want(p.returncode == -sig, f"{args}: signal {sig} gives {p.returncode}: {said}")
            want(not os.listdir(tmp), f"{args}: signal {sig} leaves {os.listdir(tmp)}")
            want(not alive(pid), f"{args}: signal {sig} leaves a child of the compiler")
    got = run(["sh", "-c", 'trap "" INT; "$0" ops >/dev/null & p=$!; kill -INT $p; wait $p', c.env.ingot], PATIENCE)
    want(got.rc == 0, f"an ignored signal: {got.rc}")
    left = sorted(set(os.listdir(c.dir)) - {"tmp", "slowcc", "child", "tuned"})
    want(not left, f"left behind: {left}")


def alive(pid):
    """Is the process running? A zombie does not count."""
    for _ in range(1000):
        try:
            with open(f"/proc/{pid}/stat") as f:
                if f.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return False
        except OSError:
            return False
        time.sleep(0.02)
    return True


def full(c):
    """A failed write to standard output is an error in every command."""
    for args in (["--help"], ["-h"], ["--version"], ["help"], ["run", "--help"], ["ops"], ["passes"], ["inspect", MODEL], ["opt", MODEL],
                 ["compile", MODEL], ["run", MODEL], ["verify", MODEL, "--engine", "interp"], ["demo"]):
        got = run(["sh", "-c", 'exec "$0" "$@" >/dev/full', c.env.ingot, *args], 60, cwd=c.dir)
        want(got.rc == 5 and "standard output" in got.text(), f"{' '.join(args)} >/dev/full: {got.rc}: {got.text()}")


def built(c):
    """A program of `ingot build` replaces its output file whole or not at all: a full disk leaves the old one, and no other
    file."""
    c.run("build", MODEL, "-d", "batch=1", "--cc", shutil.which("tcc") or "cc", "-O", "0", "-o", "prog")
    os.makedirs(c.path("out"))
    prog, keep, link = c.path("prog"), c.path("out/keep.npz"), c.path("out/link.npz")
    want(run([prog, "--output", keep], 60).rc == 0, "the program does not run")
    os.chmod(keep, 0o640)
    before = snapshot(c.path("out"))
    for args in ([keep], [c.path("out/new.npz")]):
        got = run(["sh", "-c", 'ulimit -f 0; exec "$0" --seed 5 --output "$@"', prog, *args], 60)
        want(got.rc == 5 and "File too large" in got.text() and snapshot(c.path("out")) == before, f"a full disk: {got.rc}: {got.text()}: {os.listdir(c.path('out'))}")
    got = run([prog, "--output", "/dev/full"], 60)
    want(got.rc == 5 and "No space left" in got.text(), f"/dev/full: {got.rc}: {got.text()}")
    os.symlink("keep.npz", link)
    want(run([prog, "--seed", "5", "--output", link], 60).rc == 0 and os.path.islink(link), "a link was replaced")
    after = snapshot(c.path("out"))
    want(sorted(after) == ["keep.npz", "link.npz"] and after["keep.npz"] != before["keep.npz"], f"the link's target was not replaced: {sorted(after)}")
    want(os.stat(keep).st_mode & 0o777 == 0o640, "the mode of the output changed")
    # Standard output that is appended to a file keeps the beginning of the file.
    log = c.path("log")
    got = run(["sh", "-c", 'echo first > "$1"; exec "$0" --output /dev/stdout >> "$1"', prog, log], 60)
    text = open(log, "rb").read()
    want(got.rc == 0 and text.startswith(b"first\n") and len(text) > 6, f"/dev/stdout overwrites: {text[:20]}")


def on_terminal(args, cwd, stream, seen=None, code=0, **env):
    """The text that a program writes to a terminal that is its "stdout" or "stderr"; `seen` is called with everything so far."""
    ours, theirs = pty.openpty()
    other = "stderr" if stream == "stdout" else "stdout"
    p = subprocess.Popen(args, cwd=cwd, stdin=subprocess.DEVNULL, env={**os.environ, **env}, **{stream: theirs, other: subprocess.DEVNULL})
    os.close(theirs)
    said = b""
    try:
        while data := os.read(ours, 65536):
            said += data
            if seen:
                seen(said)
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    want(p.wait() == code, f"{args}: exit {p.returncode}: {said}")
    return said


def terminal(c):
    """On a terminal a line shows the current task and disappears; elsewhere there is none."""
    go, line = c.path("go"), re.compile(rb"ingot: build, C compiler \.\.\. \d+ s")
    with open(c.path("slowcc"), "w") as f:  # compiles once the line appeared, or after the time in which it would have
        f.write('#!/bin/sh\ncase " $* " in *" -E "*) exec cc "$@";; esac\nif [ "$GO" ]; then until [ -e "$GO" ]; do sleep 0.05; done; else sleep 1.6; fi\nexec cc "$@"\n')
    os.chmod(c.path("slowcc"), 0o755)
    args = [c.env.ingot, "build", MODEL, "-d", "batch=1", "-o", "net.o", "--march", "sse2", "--cc", c.path("slowcc")]
    late = threading.Timer(PATIENCE, lambda: open(go, "w").close())
    late.start()
    try:
        said = on_terminal(args, c.dir, "stderr", lambda said: line.search(said) and open(go, "w").close(), TERM="xterm", GO=go)
    finally:
        late.cancel()
    want(line.search(said) and said.endswith(b"\r\x1b[K"), f"on a terminal: {said}")
    want(c.run(*args[1:]).text() == "", "progress without a terminal")
    os.unlink(go)
    g = onnxfile.Graph()
    g.output(g.node("MatMul", [g.input([8, 16], name="x"), g.weight(16, 16)], ["y"]), [8, 16])
    c.save("small.onnx", onnxfile.model(g))
    tuned, line = [c.env.ingot, "compile", "small.onnx", "-o", "t.c", "--march", "sse2", "--tune=t.tune", "--cc", c.path("slowcc")], re.compile(rb"ingot: tune, C compiler \.\.\. \d+ s")
    late = threading.Timer(PATIENCE, lambda: open(go, "w").close())
    late.start()
    try:
        said = on_terminal(tuned, c.dir, "stderr", lambda said: line.search(said) and open(go, "w").close(), TERM="xterm", GO=go)
    finally:
        late.cancel()
    want(line.search(said) and b"... " not in said[said.rindex(b"\r\x1b[K"):], f"tune on a terminal: {said}")


def waiting(c):
    """The line also shows tasks of the library that take long enough. Models grow until it appears."""
    for task in ("compile", "quantize"):
        for n in (500, 2000, 8000, 32000):
            if task == "compile":
                families.write("gemm", n, c.path("big.onnx"))
                args = ["compile", "big.onnx", "-o", "big.c"]
            else:
                npy.save_npz(c.path("x.npz"), {"image": npy.Array("f32", (n, 1, 8, 8), [0.5, 0.25] * (32 * n))})
                args = ["quantize", MODEL, "--data", "x.npz", "-o", "q.onnx"]
            begin = time.monotonic()
            said = on_terminal([c.env.ingot, *args], c.dir, "stderr", TERM="xterm")
            if b"... " in said or time.monotonic() - begin > 4:
                break
        want(re.search(rb"ingot: %s.* \.\.\. \d+ s" % task.encode(), said) and b"... " not in said[said.rindex(b"\r\x1b[K"):], f"{task} {n}: {said}")


def rows(c):
    """The output of train so far is in the file if it is interrupted."""
    with open(c.path("log"), "w") as log:
        p = subprocess.Popen([c.env.ingot, "train", MODEL, "--data", os.path.join(ROOT, "models", "digits.npz"), "-o", "t.onnx", "--epochs", "100000", "--engine", "vm"], cwd=c.dir, stdout=log, stderr=subprocess.DEVNULL,
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # a background process ignores SIGINT
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and open(c.path("log")).read().count("train") < 3:
            time.sleep(0.05)
        p.send_signal(signal.SIGINT)
        want(p.wait(PATIENCE) == -signal.SIGINT, "the training goes on")
    said = open(c.path("log")).read().splitlines()
    want(said[0].startswith("epoch ") and said[1].split()[:2] == ["1", "train"] and said[3].split()[:2] == ["3", "train"], f"the table is {said}")


def constants(c):
    """opt shortens large constants; --constants all prints all of them."""
    args = ("opt", MODEL, "-d", "batch=1", "--stop=none")
    seen, piped = on_terminal([c.env.ingot, *args], c.dir, "stdout"), c.run(*args, "--constants=all").out
    want(len(piped) > 20000 and len(seen) < 10000 and b"return" in seen, f"{len(seen)} bytes on a terminal, {len(piped)} elsewhere")


def long_names(c):
    """Names of any length and characters give C that strict compilers accept, and stay distinct."""
    long = "n" * 100000
    with open(c.path("long.ing"), "w") as f:
        f.write(f'graph "{long}"\nsym "s{long}" in 1..4\n(%x "{long}1": f32["s{long}"], %z "{long}2": f32["s{long}"]) {{\n'
                f'  %y "{long}": f32["s{long}"] = add(%x, %z)\n  return %y "{long}3"\n}}\n')
    c.run("compile", "long.ing", "-o", "long.c", "--caller")
    text = open(c.path("long.c")).read() + open(c.path("long.h")).read()
    want(max(map(len, text.splitlines())) < 4095, "a line is longer than C99 promises")
    names = [x.split(" ", 2)[2] for x in text.splitlines() if x.startswith("#define LONG_INPUT") and x.split()[1].endswith("_NAME")]
    want(len(set(names)) == 2, f"names are not apart: {names}")
    got = run(["cc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-c", "long.c", "-o", "long.o"], 60, cwd=c.dir)
    want(got.rc == 0, f"cc: {got.text()[:300]}")
    with open(c.path("fixed.ing"), "w") as f:
        f.write(f'graph (%x "{long}1": f32[4]) {{\n  %y: f32[4] = exp(%x)\n  return %y "{long}2"\n}}\n')
    c.run("build", "fixed.ing", "-o", "fixed.so", "--caller", "--march", "scalar")
    c.run("run", "fixed.ing", "--engine", "c", "--library", "fixed.so", "--name", "fixed", "--march", "scalar")


def cplusplus(c):
    """A C++ compiler gets an explanation of the error, and no other error."""
    if not shutil.which("g++"):
        raise Skip("no g++")
    c.run("compile", MODEL, "-d", "batch=1", "-o", "net.c")
    got = run(["g++", "-c", "net.c", "-o", "net.o"], 60, cwd=c.dir)
    said = [x for x in got.text().splitlines() if "error:" in x]
    want(got.rc and len(said) == 1 and "this file is C, not C++" in said[0], f"g++ says {said[:3]}")


def zoo(c):
    """Test data in the layout of the ONNX model zoo: the folder of the model is accepted."""
    os.makedirs(c.path("zoo/test_data_set_0"))
    shutil.copy(MODEL, c.path("zoo/model.onnx"))
    c.run("run", MODEL, "--input", image(c), "-o", "zoo/test_data_set_0")
    with open(c.path("zoo/test_data_set_0/input_0.pb"), "wb") as f:
        f.write(onnxfile.tensor("image", (1, 1, 8, 8), [(i % 17) / 16 for i in range(64)]))
    want(b"ok" in c.run("verify", "zoo/model.onnx", "--data", "zoo").out, "verify --data zoo")
    c.run("run", "zoo/model.onnx", "--data", "zoo")


def devices(c):
    """An output that is not a regular file keeps its mode and owner when it is written: as root, build once made /dev/null executable. No
    file is created next to a device."""
    arrays = os.path.join(ROOT, "models", "digits.npz")
    os.mkfifo(c.path("pipe"), 0o640)
    os.symlink("pipe", c.path("link"))
    before = {p: os.stat(p) for p in ("/dev/null", c.path("pipe"))}
    names = sorted(os.listdir("/dev"))
    with open(os.open(c.path("pipe"), os.O_RDWR), "rb"):  # it accepts 64 KiB before a writer blocks
        for out in ("/dev/null", "pipe", "link"):
            for words in (["build", MODEL, "-O0", "-d", "batch=1"], ["opt", MODEL, "--stop=none"], ["quantize", MODEL, "--data", arrays], ["train", MODEL, "--data", arrays, "--engine", "vm"],
                          ["fmt", os.path.join(ROOT, "test", "lang", "arrays.ch")], ["build", os.path.join(ROOT, "test", "lang", "arrays.ch"), "-O0"]):
                if out == "/dev/null" or words[0] in ("fmt", "train"):
                    c.run(*words, "-o", out)
    for p, st in before.items():
        now = os.stat(p)
        want((now.st_mode, now.st_uid, now.st_gid) == (st.st_mode, st.st_uid, st.st_gid), f"{p}: {oct(st.st_mode)} became {oct(now.st_mode)}")
    want(sorted(os.listdir("/dev")) == names, "a file next to /dev/null")
    with open(c.path("prog"), "w"):
        os.chmod(c.path("prog"), 0o640)
    c.run("build", MODEL, "-O0", "-d", "batch=1", "-o", "prog")
    want(os.stat(c.path("prog")).st_mode & 0o777 == 0o750, "a program that is replaced stays readable by the same people, and can be run")


def folders(c):
    """Output folders are created. run: an .npy holds one output; for several outputs it is refused with the alternative."""
    arrays = os.path.join(ROOT, "models", "digits.npz")
    for words, made in ((["compile", MODEL, "-o", "a/b/net.c"], "a/b/net.h"), (["build", MODEL, "-O0", "-o", "b/net.o"], "b/net.o"), (["run", MODEL, "-o", "c/d/y.npz"], "c/d/y.npz"),
                        (["run", MODEL, "-o", "d/e"], "d/e/output_0.pb"), (["run", MODEL, "-o", "./i.d/new/"], "i.d/new/output_0.pb"), (["quantize", MODEL, "--data", arrays, "-o", "e/q.onnx"], "e/q.onnx"), (["run", MODEL, "-o", "g/y.npy"], "g/y.npy"),
                        (["train", MODEL, "--data", arrays, "--engine", "vm", "-o", "f/t.onnx"], "f/t.onnx"), (["inspect", MODEL, "--html", "h/page.html"], "h/page.html")):
        c.run(*words)
        want(os.path.exists(c.path(made)), f"{words}: no {made}")
    want(npy.decode(open(c.path("g/y.npy"), "rb").read()).data == npy.load_npz(c.path("c/d/y.npz"))["probability"].data, "y.npy holds other numbers than y.npz")
    g = onnxfile.Graph()
    x = g.input([2], name="x")
    for op in ("Relu", "Neg"):
        g.output(g.node(op, [x]), [2])
    with open(c.path("two.onnx"), "wb") as f:
        f.write(onnxfile.model(g))
    c.run("run", "two.onnx", "-o", "two.npy", code=2, text="found 2 outputs: expected a name that ends in .npz")
    c.run("run", MODEL, "-o", "y.npzz", code=2, text="expected FILE.npz, FILE.npy")
    want(not os.path.exists(c.path("two.npy")), "two.npy")


def in_place(c):
    """train --in-place replaces the model, as -o would have written it; otherwise the model is not changed."""
    shutil.copy(MODEL, c.path("net.onnx"))
    words = ["--data", os.path.join(ROOT, "models", "digits.npz"), "--engine", "vm"]
    c.run("train", "net.onnx", *words, "-o", "new.onnx")
    was = open(c.path("net.onnx"), "rb").read()
    c.run("train", "net.onnx", *words, "-o", "net.onnx", code=2, text="is read")
    c.run("train", "net.onnx", *words, "-o", "x.onnx", "--in-place", code=2, text="leave out --output")
    want(open(c.path("net.onnx"), "rb").read() == was, "net.onnx was replaced")
    c.run("train", "net.onnx", *words, "--in-place")
    want(open(c.path("net.onnx"), "rb").read() == open(c.path("new.onnx"), "rb").read() != was, "not the model that -o writes")
    want(sorted(os.listdir(c.dir)) == ["net.onnx", "new.onnx"], f"left behind: {os.listdir(c.dir)}")


def leftovers(c):
    """The next run removes temporary files and folders of a killed run, but not those of a live process."""
    tmp = c.path("tmp")
    os.makedirs(tmp)
    env = {"TMPDIR": tmp}
    words = [c.env.ingot, "build", MODEL, "-d", "batch=1", "-o", "net.o", "--cc", c.path("cc"), "--quiet"]
    with open(c.path("cc"), "w") as f:
        f.write("#!/bin/sh\ncase \"$*\" in *-c*) sleep 60;; *) exec cc \"$@\";; esac\n")
    os.chmod(c.path("cc"), 0o755)
    for dead in (True, False):
        p = subprocess.Popen(words, cwd=c.dir, env={**os.environ, **env}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        while not any(n.startswith(f"ingot-{p.pid}-") for n in os.listdir(tmp)):
            time.sleep(0.02)
            want(p.poll() is None, "the build has ended")
        (name,) = (n for n in os.listdir(tmp) if n.startswith(f"ingot-{p.pid}-"))
        mark = "-".join(name.split("-")[1:3])
        if dead:
            p.kill()
            p.wait()
        with open(c.path(f".ingot-tmp-{mark}-1-00"), "w") as f:
            f.write("x")
        with open(c.path(f".ingot-tmp-{mark.split('-')[0]}-00000000-1-00"), "w") as f:
            f.write("of another machine")
        got = run([c.env.ingot, "build", MODEL, "-d", "batch=1", "-o", "other.o", "--quiet"], 60, cwd=c.dir, env=env)
        there = os.path.exists(os.path.join(tmp, name)), os.path.exists(c.path(f".ingot-tmp-{mark}-1-00"))
        want(not got.rc and there == (not dead, not dead), f"{'killed' if dead else 'live'}: {got.rc}, {there}: {got.text()}")
        want(os.path.exists(c.path(f".ingot-tmp-{mark.split('-')[0]}-00000000-1-00")), "a file of another machine is gone")
        os.killpg(p.pid, signal.SIGKILL) if not dead else None
        p.wait()
    before = os.listdir(tmp)
    got = run([c.env.ingot, "build", "--clean"], 60, env={**env, "XDG_CACHE_HOME": c.path("cache")})
    want(before and not got.rc and "1 file removed" in got.text() and not os.listdir(tmp), f"--clean: {before}, {os.listdir(tmp)}: {got.text()}")


def bombs(c):
    """Archives that expand 1000 times are refused before memory is allocated; arrays that are not needed are not unpacked."""
    pack, size = zlib.compressobj(9, zlib.DEFLATED, -15), 300 << 20
    packed = b"".join(pack.compress(bytes(1 << 20)) for _ in range(size >> 20)) + pack.flush()
    with zipfile.ZipFile(c.path("bomb.npz"), "w") as z:
        z.writestr("image.npy", packed)
    with open(c.path("bomb.npz"), "rb") as f:
        data = bytearray(f.read())
    for at, method, whole in ((0, 8, 22), (data.rindex(b"PK\1\2"), 10, 24)):  # the header says that it was deflated
        data[at + method:at + method + 2] = struct.pack("<H", 8)
        data[at + whole:at + whole + 4] = struct.pack("<I", size)
    c.save("bomb.npz", bytes(data))
    c.run("run", MODEL, "-d", "batch=1", "--inputs", "bomb.npz", code=3, text="more than 256 MB after unpacking")
    c.save("bomb.npz", bytes(data).replace(b"image.npy", b"other.npy"))
    c.run("run", MODEL, "-d", "batch=1", "--input", image(c), "--inputs", "bomb.npz", text="'other' is not an input of the model")


CASES = (model, data, devices, folders, in_place, before_work, signals, full, built, terminal, waiting, rows, constants, long_names, cplusplus, zoo, bombs, leftovers)


def tests(env):
    return [Test(f"safety/{fn.__name__}", lambda fn=fn: fn(Cli(env, "safety_" + fn.__name__)), cost=2) for fn in CASES]
