"""Which folder of src/ may see which: the rules and exceptions of docs/architecture.md, on what a file includes directly or through others.

    places(root) -> ["src/ir/x.c:3: ...", ...], empty when all is well
"""
import os
import re

# folder -> folders whose headers it may see; "" is src/ itself, the public header
MAY = {
    "base": {"base"},
    "ir": {"base", "ir"},
    "io": {"base", "ir", "io"},
    "text": {"base", "text"},
    "front": {"base", "ir", "io", "text", "front", "front/onnx", "front/llm", "front/tflite"},
    "front/compose": {"base", "ir", "front/compose"},
    "front/onnx": {"base", "ir", "io", "front/compose", "front/onnx"},
    "front/llm": {"base", "ir", "io", "text", "front/compose", "front/llm"},
    "front/tflite": {"base", "ir", "io", "front/compose", "front/tflite"},
    "front/lang": {"base", "ir", "front/compose", "front/lang"},
    "pass": {"base", "ir", "pass"},
    "back": {"base", "ir", "back"},
    "": {"", "base", "ir", "io", "front", "pass", "back", "api"},
    "api": {"", "base", "ir", "io", "text", "front", "pass", "back", "api"},
    "lang": {"", "base", "ir", "io", "text", "front", "front/compose", "front/lang", "pass", "back", "api", "lang"},
    "cli": {"", "cli"},
}
NOT = {"front": {"src/ir/prog.h"}, "front/compose": {"src/ir/prog.h"}, "front/onnx": {"src/ir/prog.h"}, "front/llm": {"src/ir/prog.h"}, "front/tflite": {"src/ir/prog.h"}, "front/lang": {"src/ir/prog.h"}, "back": {"src/ir/graph.h"}}  # headers a folder must never see
# Headers a folder may see although not the folder they are in: what every reader fills in, what works on the graph alone, files of
# arrays in the encoding of ONNX, and ONNX models that are written again.
ALSO = {"text": {"src/ir/mathlib.h", "src/ir/mathlibd.h", "src/ir/mathlibf.h", "src/ir/mathlibq.h", "src/ir/mathlibs.h"}, "front/onnx": {"src/front/reader.h", "src/front/input_extents.h", "src/pass/graph/grad.h"}, "front/tflite": {"src/front/reader.h", "src/front/input_extents.h"}, "front/llm": {"src/front/reader.h", "src/front/vocab_file.h"}, "api": {"src/front/onnx/pb.h", "src/front/onnx/onnx_quantize.h"}, "lang": {"src/front/onnx/pb.h"}}
# Libraries that need a switch of the Makefile (IMAGES), each in one place.
OPTIONAL = {("src/io/image_libs.c", name) for name in ("openjpeg.h", "webp/decode.h", "jpeglib.h")} | {(f"src/back/vm/{x}", "immintrin.h") for x in ("tile.c", "rows.h")}
LIBC = {"assert", "ctype", "dirent", "dlfcn", "elf", "errno", "fcntl", "fenv", "float", "inttypes", "limits", "locale", "math",
        "poll", "pthread", "sched", "setjmp", "signal", "spawn", "stdarg", "stdatomic", "stdbool", "stddef", "stdint", "stdio", "stdlib", "string",
        "strings", "sys/mman", "sys/resource", "sys/stat", "sys/syscall", "sys/time", "sys/types", "sys/utsname", "sys/wait", "time", "unistd",
        "linux/openat2"}
CALLS = r"[^/\"]*\b(exit|abort|printf|fprintf|puts|perror|system|popen|assert)\s*\("


def part(path):
    """src/base/x.c -> base, src/ingot.h -> '', src/back/c/cemit.c -> back; every front end is a part of its own"""
    pieces = path.split("/")
    if pieces[1] == "front" and len(pieces) > 3:
        return "/".join(pieces[1:3])
    return pieces[1] if len(pieces) > 2 else ""


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
        """What path sees -> (line in path, chain of files that leads there), nearest first."""
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
            if to in NOT.get(here, ()) or (part(to) not in MAY[here] and to not in ALSO.get(here, ())):
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
