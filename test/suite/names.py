"""Names in the C: kernels are called by what they compute, loops as the program calls them, parameters by what they are; kernels that differ in
such names only are one function, and no name of a program is a word of C, a macro, or another thing of the file."""
import os
import re

from lib.core import ROOT, Fail, Test, must

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


def tests(env):
    return [Test("names/said", lambda: said(env)), Test("names/words", lambda: words(env), cost=4)]
