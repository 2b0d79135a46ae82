"""Compiled code of engine c in ~/.cache/ingot: keys, untrusted files, concurrent processes, a cache that cannot be written,
`ingot cache`."""
import json
import os
import shutil
import stat
import subprocess
from lib.core import ROOT, Test, must, run, want

MODEL = os.path.join(ROOT, "models", "digits.onnx")
# A C compiler that counts compilations, but not queries of its version.
COUNTING = "#!/bin/sh\ncase \"$*\" in *--version*) ;; *) echo >> \"$COUNT\" ;; esac\nexec cc \"$@\"\n"


class Box:
    """A separate cache, and a counting compiler."""

    def __init__(self, env, name):
        self.env, self.folder = env, env.scratch("cache", name)
        shutil.rmtree(self.folder)
        os.makedirs(self.folder)
        self.home, self.count = os.path.join(self.folder, "home"), os.path.join(self.folder, "count")
        self.cc = os.path.join(self.folder, "cc")
        with open(self.cc, "w") as f:
            f.write(COUNTING)
        os.chmod(self.cc, 0o700)
        self.set = {"XDG_CACHE_HOME": self.home, "INGOT_CACHE": "", "CC": self.cc, "COUNT": self.count}

    def compiled(self):
        return open(self.count).read().count("\n") if os.path.exists(self.count) else 0

    def run(self, *words, code=0, **more):
        got = run([self.env.need_ingot(), "run", MODEL, "-d", "batch=1", "--engine", "c", "--quiet", *words], 60, env={**self.set, **more})
        want(got.rc == code, f"run {' '.join(words)}: {got.rc}: {got.text()}")
        return got.out

    def files(self):
        folder = os.path.join(self.home, "ingot")
        return sorted(os.path.join(folder, name) for name in os.listdir(folder))

    def fresh(self, what, before, *words, **more):
        """Runs; a change causes one more compilation."""
        out = self.run(*words, **more)
        want(self.compiled() == before + 1, f"{what}: compiled {self.compiled() - before} times, expected once")
        return out


def reuse(env):
    """The second run uses the code of the first; other options, weights, flags and compilers have separate code."""
    b = Box(env, "reuse")
    first = b.fresh("nothing kept", 0)
    want(b.run() == first and b.compiled() == 1, "the second run compiles")
    path, = b.files()
    want(stat.S_IMODE(os.stat(path).st_mode) & 0o77 == 0, "others can use the file")
    b.fresh("another target", 1, "--march", "scalar")
    b.fresh("threads", 2, "--threads", "2")
    b.fresh("a flag", 3, CC=b.cc + " -O1")
    with open(b.cc, "a") as f:
        f.write("\n")
    want(b.fresh("a compiler that changed", 4) == first, "other results")
    b.fresh("INGOT_CACHE=0", 5, INGOT_CACHE="0")
    want(len(b.files()) == 5, f"{len(b.files())} files, expected 5")


def damaged(env):
    """A truncated or empty file, or one that is not a library, is replaced; one that others can write is not loaded."""
    b = Box(env, "damaged")
    first = b.fresh("nothing kept", 0)
    path, = b.files()
    whole = open(path, "rb").read()
    for i, damage in enumerate((whole[:1000], b"", whole[:-100])):
        with open(path, "wb") as f:
            f.write(damage)
        want(b.fresh(f"damage {i}", 1 + i) == first and open(path, "rb").read()[:4] == whole[:4], f"damage {i}: not made anew")
    os.chmod(path, 0o722)
    want(b.fresh("a file that others can write", 4) == first, "other results")
    os.rename(path, path + ".aside")
    os.symlink(path + ".aside", path)
    want(b.fresh("a link", 5) == first, "other results")


def unwritable(env):
    """If the cache cannot be created or written, only time is lost."""
    b = Box(env, "unwritable")
    first = b.run(INGOT_CACHE="0")
    for home in ("/proc/nothing", "/dev/null/x"):
        want(b.run(XDG_CACHE_HOME=home) == first, f"{home}: other results")
    want(b.run(XDG_CACHE_HOME="", HOME="") == first, "no HOME: other results")


def together(env):
    """Processes that start at once: the same results, one file, no temporary files."""
    b = Box(env, "together")
    words = [env.need_ingot(), "run", MODEL, "-d", "batch=1", "--engine", "c", "--quiet"]
    started = [subprocess.Popen(words, env={**os.environ, **b.set}, stdout=subprocess.PIPE) for _ in range(4)]
    outs = {p.communicate()[0] for p in started}
    want(len(outs) == 1 and all(p.returncode == 0 for p in started), "results differ, or a run failed")
    want(len(b.files()) == 1, f"files: {b.files()}")


def bounded(env):
    """Above 2 GiB the least recently used code is removed, and nothing else."""
    b = Box(env, "bounded")
    b.run()
    folder = os.path.dirname(b.files()[0])
    names = ["c-" + "0" * 32, "c-" + "1" * 32, "play-" + "0" * 32]
    for i, name in enumerate(names):
        with open(os.path.join(folder, name), "w") as f:
            f.truncate(1500 << 20)  # a sparse file
        os.utime(os.path.join(folder, name), (1e9 + i, 1e9 + i))
    b.run("--march", "scalar")
    left = [os.path.basename(path) for path in b.files()]
    want(names[0] not in left and names[1] in left and names[2] in left and len(left) == 4, f"left: {left}")


def listed(env):
    """`ingot cache` lists and removes cached files, and leaves other files alone."""
    b = Box(env, "listed")
    b.run()
    other = os.path.join(b.home, "ingot", "tune")
    open(other, "w").close()
    ingot = env.need_ingot()
    text = must([ingot, "cache"], "cache", env=b.set)
    want("compiled model, engine c" in text and "1 file, " in text and " digits.onnx " in text, text)
    kept = os.path.join(b.folder, "jit", "ingot")
    os.makedirs(kept, 0o700)
    got = run([ingot, "run", MODEL, "-d", "batch=1", "--engine", "jit", "--keep-code=" + kept], 60)
    if got.rc != 3:  # without LLVM
        text = must([ingot, "cache"], "cache", env={**b.set, "XDG_CACHE_HOME": os.path.dirname(kept)})
        want("engine jit" in text and " digits.onnx " in text, text)
    found = json.loads(must([ingot, "cache", "--list", "--json"], "cache --json", env=b.set))
    want([(f["kind"], f["model"]) for f in found["files"]] == [("c", "digits.onnx")] and found["bytes"] == os.path.getsize(b.files()[0]), f"{found}")
    want(run([ingot, "cache", "--list", "--clean"], 20, env=b.set).rc == 2, "both options are taken")
    got = run([ingot, "cache", "--clean"], 20, env=b.set)
    want(got.rc == 0 and "1 file removed" in got.text() and b.files() == [other], got.text())
    want("0 files" in must([ingot, "cache"], "cache", env=b.set), "not empty")
    want("0 files removed" in run([ingot, "build", "--clean"], 20, env=b.set).text(), "build --clean")


def tests(env):
    return [Test(f"cache/{fn.__name__}", lambda fn=fn: fn(env), cost=2) for fn in (reuse, damaged, unwritable, together, bounded, listed)]
