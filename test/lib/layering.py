"""Checks which folder of src/ includes which, directly or indirectly: the rules and exceptions of docs/architecture.md.

places(root) -> ["src/ir/x.c:3: ...", ...]; empty if all includes are allowed
"""
import os
import re

# Folders of src/ir that front ends may include (GRAPH) and that back ends may include (PROG).
GRAPH = {"ir", "ir/graph", "ir/math", "ir/quant"}
PROG = {"ir", "ir/prog", "ir/math", "ir/codegen"}
IR = GRAPH | PROG | {"ir/ref"}
TEXT = {"tokenizer", "chat"}
LANG = {"lang/syntax", "lang/run"}
PASS = {"pass", "pass/graph", "pass/form", "pass/kernel", "pass/lower"}
API = {"", "base", "host", "io", "front", "back", "api"} | IR | PASS | TEXT
DRIVER = API | {"driver"}
# folder -> folders whose headers it may include; "" is src/ itself, the public header. An unlisted folder has the rule of its parent.
MAY = {
    "base": {"base"},
    "host": {"", "base", "host"},
    "ir": {"base", "ir", "ir/math"},
    "ir/math": {"base", "ir", "ir/math"},
    "ir/quant": {"base", "ir", "ir/math", "ir/quant"},
    "ir/graph": {"base"} | GRAPH,
    "ir/ref": {"base", "ir/ref"} | GRAPH,
    "ir/prog": {"base", "ir", "ir/math", "ir/prog"},
    "ir/codegen": {"base"} | PROG,
    "io": {"base", "ir", "ir/quant", "io"},
    "tokenizer": {"base", "tokenizer"},
    "chat": {"base"} | TEXT,
    "front": {"base", "io"} | GRAPH | TEXT | {"front", "front/onnx", "front/llm", "front/tflite"},
    "front/compose": {"base", "front/compose"} | GRAPH,
    "front/onnx": {"base", "io", "front/compose", "front/onnx"} | GRAPH,
    "front/llm": {"base", "io", "front/compose", "front/llm"} | GRAPH | TEXT,
    "front/tflite": {"base", "io", "front/compose", "front/tflite"} | GRAPH,
    "lang/syntax": {"base", "front/compose", "lang/syntax"} | GRAPH,
    "pass": {"base", "pass"} | IR,  # files directly in it, of src/pass/loop and of src/pass/memory
    "pass/graph": {"base", "pass", "pass/graph"} | IR,
    "pass/form": {"base", "pass", "pass/form"} | IR,
    "pass/kernel": {"base", "pass", "pass/form", "pass/kernel"} | IR,
    "pass/lower": {"base", "pass", "pass/form", "pass/kernel", "pass/lower"} | IR,
    "back": {"base", "back"} | PROG,
    "": {""},
    "api": API,
    "driver": DRIVER,
    "driver/verify": DRIVER | {"driver/verify"},
    "driver/build": DRIVER | {"driver/build", "driver/verify"},
    "driver/bench": DRIVER | {"driver/bench", "driver/build"},
    "driver/doctor": DRIVER | {"driver/bench", "driver/build"},
    "driver/report": DRIVER | {"driver/bench", "driver/report"},
    "driver/quantize": DRIVER | {"driver/quantize"},
    "driver/train": DRIVER | {"driver/train"},
    "driver/serve": DRIVER | {"driver/serve"},
    "lang/run": {"front/compose", "driver/build"} | API | LANG,
    "cli": {"", "cli"},
}
MATH = {f"src/ir/math/mathlib{x}.h" for x in ("", "d", "f", "q", "s")}
# Exceptions: headers that a folder may include; docs/architecture.md gives the reasons.
ALSO = {
    "pass/graph": {"src/pass/kernel/family.h"},
    "chat": MATH,
    "front/onnx": {"src/front/reader.h", "src/front/input_extents.h", "src/pass/graph/grad.h"},
    "front/tflite": {"src/front/reader.h", "src/front/input_extents.h"},
    "front/llm": {"src/front/reader.h", "src/front/vocab_file.h"},
    "api": {"src/front/onnx/pb.h"},
    "driver/verify": {"src/front/onnx/pb.h"},
    "driver/quantize": {"src/front/onnx/onnx_quantize.h"},
}
# System headers of optional libraries and vector instructions, each allowed in one file.
OPTIONAL = {("src/io/image_libs.c", name) for name in ("openjpeg.h", "webp/decode.h", "jpeglib.h")} | {(f"src/back/vm/{x}", "immintrin.h") for x in ("tile.c", "rows.h")}
LIBC = {"assert", "ctype", "dirent", "dlfcn", "elf", "errno", "fcntl", "fenv", "float", "inttypes", "limits", "locale", "math",
        "poll", "pthread", "sched", "setjmp", "signal", "spawn", "stdarg", "stdatomic", "stdbool", "stddef", "stdint", "stdio", "stdlib", "string",
        "strings", "sys/auxv", "sys/mman", "sys/resource", "arpa/inet", "netinet/in", "sys/random", "sys/socket", "sys/stat", "sys/syscall", "sys/time", "sys/types", "sys/utsname", "sys/wait", "time", "unistd",
        "linux/openat2"}
CALLS = r"[^/\"]*\b(exit|abort|printf|fprintf|puts|perror|system|popen|assert)\s*\("


def part(path):
    """The innermost folder with a rule: src/base/x.c -> base, src/ingot.h -> '', src/back/c/cemit.c -> back, src/front/onnx/o.c -> front/onnx"""
    folders = path.split("/")[1:-1]
    inner = "/".join(folders[:2])
    return inner if inner in MAY else folders[0] if folders else ""


class Tree:
    def __init__(self, root):
        self.root = root
        self.files = {}   # path -> lines
        self.direct = {}  # path -> [(line, path)]
        self.wrong = []
        for folder, _, names in sorted(os.walk(os.path.join(root, "src"))):
            for name in sorted(names):
                if name.endswith((".c", ".h", ".def")):
                    full = os.path.join(folder, name)
                    with open(full, encoding="utf-8") as f:
                        self.files[os.path.relpath(full, root)] = f.read().splitlines()
        for path in self.files:
            self.direct[path] = [*self.includes(path)]

    def resolve(self, path, name):
        """The file that the compiler finds: next to the including file, else below src/ (-Isrc)."""
        for top in (os.path.dirname(path), "src"):
            found = os.path.normpath(os.path.join(top, name))
            if found in self.files:
                return found
        return None

    def includes(self, path):
        for line, text in enumerate(self.files[path], 1):
            m = re.match(r'\s*#\s*include\s*(?:([<"])([^>"]+))?', text)
            if not m:
                continue
            where, name = f"{path}:{line}", m[2]
            if not name:
                self.wrong.append(f"{where}: an include that is not a name")
            elif m[1] == "<":
                if name.removesuffix(".h") not in LIBC and (path, name) not in OPTIONAL:
                    self.wrong.append(f"{where}: <{name}> is not of libc or libm")
            elif not self.resolve(path, name):
                self.wrong.append(f"{where}: {name} does not exist")
            else:
                yield line, self.resolve(path, name)

    def reach(self, path):
        """All files that path includes -> (line in path, chain of includes), nearest first."""
        seen, todo = {path: (0, [])}, [path]
        while todo:
            at = todo.pop(0)
            for line, to in self.direct[at]:
                if to not in seen:
                    seen[to] = (line if at == path else seen[at][0], seen[at][1] + [to])
                    todo.append(to)
        del seen[path]
        return seen

    def judge(self, path):
        here = part(path)
        if here not in MAY:
            self.wrong.append(f"{path}: the rule does not know the folder {here}")
            return
        for to, (line, chain) in self.reach(path).items():
            if part(to) not in MAY[here] and to not in ALSO.get(here, ()):
                via = f" through {' and '.join(chain[:-1])}" if len(chain) > 1 else ""
                self.wrong.append(f"{path}:{line}: {here or 'src'} must not see {to}{via}")


def places(root):
    tree = Tree(root)
    for path in tree.files:
        tree.judge(path)
    for path, lines in tree.files.items():
        if not path.endswith(".c") or part(path) == "cli":
            continue
        for line, text in enumerate(lines, 1):
            m = re.match(CALLS, text)
            if m and not text.lstrip().startswith("*"):
                tree.wrong.append(f"{path}:{line}: the library calls {m[1]}")
    return tree.wrong
