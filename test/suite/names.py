"""Names in generated C: kernels are named after what they compute, loops and parameters as in the model.

Kernels that differ only in such names are one function.
No name of a program is a C keyword, a macro, or another name of the file.
"""
import os
import re

from lib.core import ROOT, Fail, Test, must, need

STRICT = ["-std=gnu99", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]
WORDS = ["if", "do", "int", "for", "unix", "linux", "asm", "x", "y", "w", "b", "s", "z", "i", "i1", "at", "to", "v0", "r0", "a0", "h0", "in0", "seed", "job"]


def said(env):
    env.need_ingot()
    text = must([env.ingot, "compile", os.path.join(ROOT, "models", "digits.onnx"), "-d", "batch=1", "--march", "avx2", "--name", "net"], "compile")
    for want in (r"/\* conv3x3_batchnorm_relu conv1 \+ bn1 \+ relu1\n", r"void net_conv3x3_batchnorm_relu_\d+\(const float \*restrict w, const float \*restrict x, "
                 r"const float \*restrict b, float \*restrict y\)", r"\n \* x: f32\[1,1,10,10,8\] relu1\n", r"net_maxpool2x2_s2_\d+\(t"):
        if not re.search(want, text):
            raise Fail(f"nothing like {want} in the C of digits.onnx")


def program(name, other):
    """Nested loops and variables with such names, in two kernels that differ in names and in what they read."""
    names = [name, other, name + "9", other + "8"]
    text = "prog names\nbuf a: in f32[2,2,2]\nbuf c: const f32[2,2,2] = {1, 2, 3, 4, 5, 6, 7, 8}\nbuf t: temp f32[2,2,2]\nbuf u: out f32[2,2,2]\n"
    for label, source, to, (i, j, k, v) in (("Add*/ one", "a", "t", names), ("add two", "c", "t", ["k", "l", "m", "acc"]), ("add, three", "t", "u", names[::-1])):
        text += f'kernel "{label}" {{\n  for {i} in 0..2 {{\n    for {j} in 0..2 {{\n      for {k} in 0..2 {{\n        let {v}: f32 = {source}[{i}, {j}, {k}]\n'
        text += f"        {to}[{i}, {j}, {k}] = {v} + {v}\n      }}\n    }}\n  }}\n}}\n"
    return text


def words(env):
    env.need_ingot()
    work = env.scratch("names", "words")
    source, c = os.path.join(work, "net.prog"), os.path.join(work, "net.c")
    for word, other in zip(WORDS, WORDS[1:] + WORDS[:1]):
        with open(source, "w") as f:
            f.write(program(word, other))
        must([env.ingot, "compile", source, "--name", "net", "-o", c], f"loops called {word}")
        must(["gcc", *STRICT, "-fsyntax-only", c], f"C of loops called {word}")
        functions = re.findall(r"^static void (\w+)\(", open(c).read(), re.M)
        if functions != ["net_add_0"]:
            raise Fail(f"loops called {word}: kernels that differ in names only are {functions}")


KEYWORDS = """alignas and asm async auto await bool break case char class co_await concept const continue crate default delete do double dyn else enum export extern false
float fn for friend gen goto if impl in inline int let long loop macro match mod move mut namespace new not nullptr operator or private pub ref register requires restrict
return self short signed sizeof static struct super switch template this throw trait true try type typedef typeof union unsafe unsigned use using void volatile where while
xor yield linux unix errno stdin small near interface int64_t size_t arena seed status why size misfit take need within extent memory weight_file std net_run net_why
n0 in0 out0 n in1""".split()
STRANGE = ["input ids", "INPUT.IDS", "input_ids", "\u5165\u529b", "\u00e9t\u00e9", "*/ int evil(void); /*", "a\\", "1st", "__x__", "_", "", "x" * 200, "x" * 201, "y_shape"]


def params(env):
    """The prototype has the model's names as unique words in C, C++ and Rust; sizes and arrays are described."""
    env.need_ingot()
    need("gcc"), need("g++")
    work = env.scratch("names", "params")
    path, c = os.path.join(work, "net.ing"), os.path.join(work, "net.c")
    inputs = KEYWORDS + STRANGE
    text = 'graph sym "batch size" in 1..3 (' + ", ".join(f'%i{k} "{name_text(n)}": i32["batch size"]' for k, n in enumerate(inputs)) + ") {\n"
    for k in range(1, len(inputs)):
        text += f'  %s{k}: i32["batch size"] = add(%{"i0" if k == 1 else f"s{k - 1}"}, %i{k})\n'
    with open(path, "w", encoding="utf-8") as f:
        f.write(text + f'  return %s{len(inputs) - 1} "y"\n}}\n')
    must([env.ingot, "compile", path, "--name", "net", "--cpp", "--quiet", "-o", c], "compile")
    header = open(os.path.join(work, "net.h")).read()
    found = re.search(r"int net_run\(void \*arena, int64_t batch_size,([^()]*),\s+int32_t \*y\);", header)
    if not found:
        raise Fail("no prototype with batch_size and y")
    names = [p.split("*")[1] for p in found[1].split(",")]
    if len(names) != len(inputs) or len(set(names)) != len(names) or not all(re.fullmatch("[a-z][a-z0-9_]*", n) for n in names):
        raise Fail(f"parameters {names}")
    given = dict(zip(inputs, names))
    for name, wanted in (("input ids", "input_ids"), ("INPUT.IDS", "input_ids_2"), ("class", "class_in"), ("arena", "arena_in"), ("1st", "in_1st"), ("n", "n"), ("__x__", "x")):
        if given[name] != wanted:
            raise Fail(f"input '{name}' is the parameter {given[name]}, expected {wanted}")
    for line in ("batch_size  size 'batch size': 1 to 3", "y  output 'y': i32[", "at most NET_OUTPUT0_ELEMENTS elements", "aligned to 64 bytes", "#define NET_SIZE_BATCH_SIZE_MAX NET_SIZE0_MAX",
                 "#define NET_INPUT_INPUT_IDS_ELEMENTS NET_INPUT", "enum net_status {", "NET_ERR_ARENA = 1,"):
        if line not in re.sub("  +", "  ", header):
            raise Fail(f"the header has no '{line}'")
    must(["gcc", *STRICT, "-fsyntax-only", c], "C")
    with open(os.path.join(work, "main.cpp"), "w") as f:
        f.write('#include <cerrno>\n#include <cstdio>\n#include "net.hpp"\nint main() { net::Net n; return NET_OK; }\n')
    must(["g++", "-std=gnu++20", *STRICT[1:], "-fsyntax-only", os.path.join(work, "main.cpp")], "C++")
    must([env.ingot, "export", path, "--project", "rust", "--name", "net", "--quiet", "-o", os.path.join(work, "crate")], "export")
    need("rustc")
    must(["rustc", "--edition", "2021", "--crate-type", "lib", "--emit", "metadata", "-D", "warnings", "--out-dir", work, os.path.join(work, "crate", "src", "lib.rs")], "Rust")


def name_text(name):
    return name.replace("\\", "\\\\").replace('"', '\\"')


def tests(env):
    return [Test("names/params", lambda: params(env), cost=3), Test("names/said", lambda: said(env)), Test("names/words", lambda: words(env), cost=4)]
