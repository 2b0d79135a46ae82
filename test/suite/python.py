"""The Python package: test/python/check.py on the library of build/, from a wheel without a compiler, and on a second version of
Python; contents of the wheel and of the source archive."""
import base64
import csv
import hashlib
import io
import json
import os
import re
import shutil
import sys
import tarfile
import zipfile
from lib.core import ROOT, Fail, Skip, Test, must, want
from suite.play import made

CHECKS = ("simple several", "overlap room", "in_place", "dimensions contents", "state values", "errors dlpack", "threads", "session bindings", "kept", "background", "language", "processes", "steady",
          "rows training", "job predictors")
OTHER = "simple several overlap room in_place dimensions state values errors dlpack session bindings kept background rows job"
KEYWORDS = {"input": "in"}  # a field that Python cannot call as C does
DLPACK = {"_Device": 8, "_Type": 4, "_Array": 48, "_Versioned": 80}  # bytes, where a pointer has 8
LIMIT = 300


def models(env):
    out = os.path.join(env.build, "python")

    def make():
        os.makedirs(out, exist_ok=True)
        env.script("mkpython.py", out)
    env.once("models of python", lambda: env.generated(out, ["make/mkpython.py", "requirements.txt"], make))
    return out


def check(env, names):
    if names == "language":
        env.need_ingot()
        made(env)
    must([env.need_python(), os.path.join(ROOT, "test", "python", "check.py"), models(env), *names.split()], f"check.py {names}", timeout=LIMIT,
         env={"PYTHONPATH": os.path.join(ROOT, "python"), "INGOT_LIBRARY": os.path.join(env.build, "libingot.so")})


def declared(text, pattern):
    """Fields of the structures of a C header, by name, in order. pattern: how a structure is named, its name in a group."""
    out = {}
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    for name, body in re.findall(r"typedef struct %s \{(.*?)\n\}" % pattern, text, flags=re.S):
        out[name] = []
        for line in filter(str.strip, body.split(";")):
            pointer = re.search(r"\(\*(\w+)\)\(", line)
            out[name] += [pointer[1]] if pointer else [re.search(r"(\w+)\s*(\[\w+\])?\s*$", part)[1] for part in line.split(",")]
    return out


def structures(env):
    """Every ctypes structure of the package has the size, the fields and the offsets of its C declaration, in ingot.h or in the
    header of a language model. Those of DLPack have a fixed size."""
    code = ("import ctypes, importlib, json, os, pkgutil, ingot\n"
            "found = {}\n"
            "for m in pkgutil.iter_modules(ingot.__path__):\n"
            "    if m.name.startswith('_') and m.name != '__main__':\n"
            "        module = importlib.import_module('ingot.' + m.name)\n"
            "        found.update({n: t for n, t in vars(module).items() if isinstance(t, type) and issubclass(t, ctypes.Structure) and t is not ctypes.Structure})\n"
            "print(json.dumps({n: [ctypes.sizeof(t), {f[0]: getattr(t, f[0]).offset for f in t._fields_}] for n, t in found.items()}))")
    ours = json.loads(must([env.need_python(), "-c", code], "import ingot",
                           env={"PYTHONPATH": os.path.join(ROOT, "python"), "INGOT_LIBRARY": os.path.join(env.build, "libingot.so")}))
    sizes = {name: ours.pop(name)[0] for name in list(ours) if name.startswith("_")}
    want(sizes == DLPACK, f"structures of DLPack have the sizes {sizes}, expected {DLPACK}")
    want(len(ours) >= 11, f"only {sorted(ours)} are compared")
    with open(os.path.join(ROOT, "src", "ingot.h")) as f:
        fields = declared(f.read(), r"Ingot(\w+)")
    with open(os.path.join(ROOT, "tools", "lm_api.h.in")) as f:  # a template of C text
        lines = f.read()
    own = {name.capitalize(): order for name, order in declared(lines, r"\$\{name\}_(\w+)").items()}
    folder = env.scratch("python", "structures")
    with open(os.path.join(folder, "say.c"), "w") as f:
        f.write('#include "ingot.h"\n#include <stddef.h>\n#include <stdio.h>\n')
        for name in own:
            f.write(re.search(r"typedef struct \$\{name\}_%s \{.*?\n\} \$\{name\}_%s;\n" % (name.lower(), name.lower()), lines, flags=re.S)[0].replace("${name}_" + name.lower(), "Ingot" + name))
        f.write("int main(void) {\n")
        for name, (_size, mine) in ours.items():
            order = {**fields, **own}.get(name)
            want(order == [KEYWORDS.get(field, field) for field in mine], f"{name} has the fields {list(mine)}, in C {order}")
            f.write(f'  printf("{name} %zu\\n", sizeof(Ingot{name}));\n')
            f.writelines(f'  printf("{name}.{field} %zu\\n", offsetof(Ingot{name}, {KEYWORDS.get(field, field)}));\n' for field in mine)
        f.write("  return 0;\n}\n")
    must(["cc", "-I", os.path.join(ROOT, "src"), "say.c", "-o", "say"], "cc", cwd=folder)
    theirs = must([os.path.join(folder, "say")], "say").split("\n")
    mine = [line for name, (size, mine) in ours.items() for line in (f"{name} {size}", *(f"{name}.{field} {at}" for field, at in mine.items()))]
    want(mine == theirs[:-1], f"python/ingot and its C headers differ: {sorted(set(mine) ^ set(theirs[:-1]))}")


def backend(env):
    """The build backend as a module."""
    sys.path.insert(0, os.path.join(ROOT, "python"))
    try:
        import ingot_build
        return ingot_build
    finally:
        sys.path.pop(0)


def make_wheel(env):
    """Its path; built once, from what is already compiled."""
    def make():
        env.need_ingot()
        folder = env.scratch("python", "wheel")
        shutil.rmtree(folder)
        os.makedirs(folder)
        code = f"import ingot_build; print(ingot_build.build_wheel({folder!r}))"
        name = must([env.need_python(), "-c", code], "build_wheel", timeout=600, env={"PYTHONPATH": os.path.join(ROOT, "python")})
        return os.path.join(folder, name.split()[-1])
    return env.once("wheel", make)


def contents(env):
    """Names, dates, hashes; the library needs only the C library, of the version in the tag."""
    path = make_wheel(env)
    with zipfile.ZipFile(path) as z:
        names = set(z.namelist())
        data = {name: z.read(name) for name in names}
        want(len({i.date_time for i in z.infolist()}) == 1, "files of the wheel have different dates")
    record = next(name for name in names if name.endswith("/RECORD"))
    for name, digest, _size in csv.reader(io.StringIO(data[record].decode())):
        if name != record:
            found = base64.urlsafe_b64encode(hashlib.sha256(data[name]).digest()).rstrip(b"=").decode()
            want(digest == "sha256=" + found, f"RECORD is wrong about {name}")
            names.discard(name)
    want(names == {record}, f"not in RECORD: {names}")
    version = data[record.replace("RECORD", "METADATA")].decode().split("\nVersion: ")[1].split()[0]
    with open(os.path.join(ROOT, "src", "ingot.h")) as f:
        want(f'INGOT_VERSION "{version}"' in f.read(), f"the wheel is of version {version}, src/ingot.h is not")
    want(f'"{version}"' in data["ingot/_version.py"].decode(), "python/ingot/_version.py has another version")
    want({"ingot/libingot.so", "ingot/py.typed", "ingot/backend.py"} <= set(data), "the wheel lacks files")
    libraries, newest = backend(env).needs(os.path.join(env.build, "libingot.so"))
    many = re.search(r"manylinux_2_(\d+)_", os.path.basename(path))
    want(many and newest <= (2, int(many[1])), f"{os.path.basename(path)}: the library asks for glibc {newest} and {libraries}")


def installed(env):
    """From the wheel, without a C compiler: engine vm or jit."""
    folder = env.scratch("python", "installed")
    shutil.rmtree(folder)
    must([env.need_python(), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-index", "--no-deps", "--no-compile", "--target", folder,
          make_wheel(env)], "pip install")
    code = (f"import ingot, numpy; print(ingot.default_engine(), ingot.__file__.startswith({folder!r}));"
            f"print(ingot.compile({os.path.join(ROOT, 'models', 'digits.onnx')!r})(numpy.zeros((2, 1, 8, 8), 'f4')).shape)")
    out = must([env.need_python(), "-c", code], "import ingot", cwd=folder,
               env={"PYTHONPATH": folder, "PATH": "/nowhere", "CC": "", "INGOT_LIBRARY": ""})
    want(re.fullmatch(r"(vm|jit) True\n\(2, 10\)\n", out), f"prints {out!r}")
    want(must([os.path.join(folder, "bin", "ingot"), "--version"], "the command of the wheel").strip(), "no version")


def other(env):
    """From the wheel, on another version of Python."""
    program = os.path.join(env.build, "other", "bin", "python")
    if not os.path.exists(os.path.join(env.build, "other", "requirements.txt")):
        raise Skip("there is no second version of Python (3.9, 3.10 or 3.12) with NumPy")
    folder = env.scratch("python", "other")
    shutil.rmtree(folder)
    must([program, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-index", "--no-deps", "--no-compile", "--target", folder, make_wheel(env)], "pip install")
    which = must([program, "-c", "import sys, ingot; print(sys.version_info[:2], ingot.__file__)"], "import ingot", env={"PYTHONPATH": folder, "INGOT_LIBRARY": ""})
    want(f"({sys.version_info[0]}, {sys.version_info[1]})" not in which and folder in which, f"the same version, or another package: {which}")
    must([program, os.path.join(ROOT, "test", "python", "check.py"), models(env), *OTHER.split()], f"check.py {OTHER}", timeout=LIMIT,
         env={"PYTHONPATH": folder, "INGOT_LIBRARY": ""})


def sources(env):
    """The archive has what make needs; the same bytes twice."""
    folders, module = [env.scratch("python", f"sdist{i}") for i in range(2)], backend(env)
    names = [module.build_sdist(folder) for folder in folders]
    both = [open(os.path.join(folder, names[0]), "rb").read() for folder in folders]
    want(both[0] == both[1], "the archive differs from one time to the next")
    with tarfile.open(os.path.join(folders[0], names[0])) as t:
        inside = {name.split("/", 1)[1] for name in t.getnames()}
    for name in ("PKG-INFO", "pyproject.toml", "Makefile", "LICENSE", "src/ingot.h", "tools/embed.c", "bench/peak.c", "models/digits.onnx",
                 "python/ingot_build.py", "python/ingot/__init__.py"):
        want(name in inside, f"the archive lacks {name}")
    if any("__pycache__" in name or name.startswith("build") for name in inside):
        raise Fail("the archive has files that were built")


def tests(env):
    out = [Test(f"python/{names.replace(' ', '-')}", lambda n=names: check(env, n), cost=6) for names in CHECKS]
    for fn in (structures, contents, installed, other, sources):
        out.append(Test(f"python/{fn.__name__}", lambda fn=fn: fn(env), cost=4))
    return out
