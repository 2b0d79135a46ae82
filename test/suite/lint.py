"""Static checks: formatting, clang-tidy, cppcheck, include layering, file sizes, words that do not belong.

clang-tidy is dear, so a file that passed is not looked at again until it, a header or the settings change.
"""
import hashlib
import os
import re
import shutil
from lib.core import ROOT, Fail, Skip, Test, run, tail

# folder -> folders whose headers it may include. The rule of docs/style.md.
MAY = {
    "base": {"base"},
    "ir": {"base", "ir"},
    "onnx": {"base", "ir", "onnx"},
    "pass": {"base", "ir", "pass", "back"},
    "back": {"base", "ir", "back"},
    "": {"", "base", "ir", "onnx", "pass", "back", "api"},
    "api": {"", "base", "ir", "onnx", "pass", "back", "api"},
    "cli": {"", "cli"},
}
NOT = {"onnx": {"prog.h"}, "back": {"graph.h", "pass.h"}}  # headers a folder must never see
LIBC = {"assert", "ctype", "dirent", "dlfcn", "elf", "errno", "fcntl", "fenv", "float", "inttypes", "limits", "locale", "math", "poll", "pthread",
        "setjmp", "signal", "spawn", "stdarg", "stdbool", "stddef", "stdint", "stdio", "stdlib", "string", "strings",
        "sys/mman", "sys/resource", "sys/stat", "sys/syscall", "sys/time", "sys/types", "sys/wait", "time", "unistd",
        "linux/openat2"}
# The analyzer gives up on a function earlier than by default: five times faster, and the same findings here.
TIDY_FLAGS = [*(f"--extra-arg={x}" for x in ("-Xclang", "-analyzer-config", "-Xclang", "max-nodes=40000")),
              "--", "-std=c11", "-D_GNU_SOURCE", "-Isrc", "-Ibuild"]


def sources(*kinds, tops=("src", "test")):
    for top in tops:
        for folder, _, files in sorted(os.walk(os.path.join(ROOT, top))):
            for name in sorted(files):
                if name.endswith(kinds):
                    yield os.path.relpath(os.path.join(folder, name), ROOT)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def part(path):
    """src/base/x.c -> base, src/ingot.c -> '', src/back/c/emit.c -> back"""
    pieces = path.split("/")
    return pieces[1] if len(pieces) > 2 else ""


def layering():
    headers = {}
    for path in sources(".h", ".def", tops=("src",)):
        headers.setdefault(os.path.basename(path), []).append(path)
    wrong = []
    for path in sources(".c", ".h", ".def", tops=("src",)):
        here = part(path)
        for line, text in enumerate(read(path).splitlines(), 1):
            m = re.match(r'\s*#\s*include\s*([<"])([^>"]+)', text)
            if not m:
                continue
            where, name = f"{path}:{line}", m[2]
            if m[1] == "<":
                if name.removesuffix(".h") not in LIBC:
                    wrong.append(f"{where}: <{name}> is not of libc or libm")
                continue
            known = headers.get(os.path.basename(name))
            if not known:
                continue  # generated into build/
            if os.path.basename(name) in NOT.get(here, ()):
                wrong.append(f"{where}: {here} must not see {name}")
            elif not any(part(k) in MAY.get(here, ()) for k in known):
                wrong.append(f"{where}: {here or 'api'} must not include {name}")
    for path in sources(".c", tops=("src",)):
        if part(path) == "cli":
            continue
        for line, text in enumerate(read(path).splitlines(), 1):
            m = re.match(r"[^/\"]*\b(exit|abort|printf|fprintf|puts|perror|system|popen|assert)\s*\(", text)
            if m and not text.lstrip().startswith("*"):
                wrong.append(f"{path}:{line}: the library calls {m[1]}")
    if wrong:
        raise Fail("\n  ".join([f"{len(wrong)} places"] + wrong[:20]))


def need(tool):
    if not shutil.which(tool):
        raise Skip(f"{tool} is not installed")


def formatting():
    need("clang-format")
    files = list(sources(".c", ".h"))
    got = run(["clang-format", "--dry-run", "-Werror", *files], 120, cwd=ROOT)
    if got.rc:
        names = sorted({line.split(":")[0] for line in got.text().splitlines() if "error:" in line})
        raise Fail(f"`make format` changes {len(names)} files: {' '.join(names[:12])}")


def tidy(env, path, key):
    need("clang-tidy")
    digest = hashlib.sha256((key + read(path)).encode()).hexdigest()
    stamp = os.path.join(env.scratch("tidy"), path.replace("/", "_"))
    if os.path.exists(stamp) and open(stamp).read() == digest:
        return
    got = run(["clang-tidy", "--quiet", path, *TIDY_FLAGS], 300, cwd=ROOT)
    if got.rc:
        found = [x for x in got.out.decode().splitlines() if "error:" in x or "warning:" in x]
        raise Fail("\n  ".join([f"{len(found)} findings"] + found[:10] + ([] if found else [tail(got.text())])))
    with open(stamp, "w") as f:
        f.write(digest)


def cppcheck():
    """cppcheck 2.10 does not see that fail() never returns, so what it deduces from conditions is left to clang's
    analyzer, which does; the rest of its checks count."""
    need("cppcheck")
    off = ["nullPointerRedundantCheck", "nullPointer", "ctunullpointer", "uninitvar", "shiftNegative", "autoVariables",
           "missingInclude", "unknownMacro", "invalidPointerCast", "internalAstError"]
    got = run(["cppcheck", "--quiet", "-j2", "--std=c11", "--language=c", "--enable=portability,performance",
               "--inline-suppr", "--error-exitcode=1", *("--suppress=" + x for x in off),
               "-D_GNU_SOURCE", "-D__GNUC__=12", "-Isrc", "src"], 400, cwd=ROOT)
    if got.rc:
        raise Fail(tail(got.text(), 20))


def sizes():
    got = run(["python3", "test/wc.py"], 60, cwd=ROOT)
    if got.rc:
        over = [x.strip() for x in got.out.decode().splitlines() if "over 800" in x]
        raise Fail("; ".join(over) or tail(got.text()))


def tests(env):
    out = [Test("lint/layering", layering), Test("lint/format", formatting), Test("lint/sizes", sizes),
           Test("lint/cppcheck", cppcheck, cost=30)]
    shared = [".clang-tidy", *sources(".h", ".def", tops=("src",))]
    key = "".join(hashlib.sha256(read(p).encode()).hexdigest() for p in shared)
    return out + [Test("lint/tidy " + p, lambda p=p: tidy(env, p, key), cost=4) for p in sources(".c", tops=("src",))]
