"""Programs of the language of any size, for suite/growth.py: text(family, n) has n elements of a family."""


def lines(form, n):
    return "".join(form.replace("@", str(i)) for i in range(n))


def listed(form, n):
    return ", ".join(form.replace("@", str(i)) for i in range(n))


FAMILIES = {
    "functions": lambda n: lines("fn f@(a: int32) -> int32 { a + @ }\n", n),
    "calls": lambda n: "fn f0(a: int32) -> int32 { a }\n" + "".join(f"fn f{i + 1}(a: int32) -> int32 {{ f{i}(a) + 1 }}\n" for i in range(n)),
    "circle": lambda n: "".join(f"fn f{i}(a: int32) -> int32 {{ if a == 0 {{ 0 }} else {{ f{(i + 1) % n}(a - 1) }} }}\n" for i in range(n)),
    "untyped": lambda n: "".join(f"fn f{i}(a) {{ f{i + 1}(a) }}\n" for i in range(n)) + f"fn f{n}(a) {{ 1 }}\n",
    "variables": lambda n: lines("let v@ = @\n", n),
    "assignments": lambda n: "let x = 0\n" + lines("x = x + @\n", n),
    "choices": lambda n: "let x = 0\n" + lines("if x == @ { let y@ = 1 } else { let y@ = 2 }\n", n),
    "loops": lambda n: "let s = 0\n" + lines("for i in 0..1 {\n    let t@ = i\n    s = s + t@\n}\n", n),
    "matches": lambda n: "let x = 3\nlet y = match x { " + listed("@ => {\n    let z = @\n    z\n}", n) + ", _ => 0 }\n",
    "arms": lambda n: "fn f(k) {\n" + lines("let v@ = 1\n", n) + "match 3 { " + listed("@ => { v@ = k }", n) + ", _ => {} }\n}\nf(1)\n",
    "structs": lambda n: lines("struct S@ { a: int32, b: string }\nlet s@ = S@ { a: 1, b: \"x\" }\n", n),
    "fields": lambda n: f"struct S {{ {listed('f@: int32', n)} }}\nlet s = S {{ {listed('f@: @', n)} }}\n" + lines("s.f@ = 2\n", n),
    "arrays": lambda n: f"let a = [{listed('[@, 1.5]', n)}]\n",
    "arguments": lambda n: f"fn f({listed('a@: int32', n)}) -> int32 {{ a0 }}\nf({listed('@', n)})\n",
    "closures": lambda n: "fn outer(k: int32) -> int32 {\n" + lines("    let c@ = fn(a: int32) -> int32 { a + k + @ }\n", n) + "    c0(1)\n}\nprint(outer(1))\n",
    "captures": lambda n: "fn outer() -> int32 {\n" + lines("    let v@ = @\n", n) + "    let c = fn() -> int32 {\n" + lines("        let w@ = v@\n", n) + "        0\n    }\n    c()\n}\nprint(outer())\n",
    "models": lambda n: lines("model M@ { layers { dense(2, 2) } }\n", n),
    "layers": lambda n: "model M { layers { " + "dense(2, 2) " * n + "} }\n",
    "globals": lambda n: lines("let g@ = 0\nfn f@() { g@ = g@ + 1 }\n", n),
    "derivative": lambda n: f"fn f(x: float) -> float {{\n    let y = x\n    for i in 0..{n} {{ y = y * 1.00001 + x * 0.001 }}\n    y\n}}\nprint(autograd(f, 0.5))\n",
    "tensors": lambda n: "let t = tensor([1.0])\n" + "t = t + 1.0\n" * n,
}

# text of Prog: kernels with many records, many loops with roles, and many variables that depend on one
PROG = "ingot 2\nprog\nbuf x: in f32[8]\nbuf y: out f32[8]\n"
TEXTS = {
    "records": lambda n: PROG + 'kernel "k"' + "\n    as plain out y" * n + " {\n" + "".join(
        f"  for i{i} in 0..8 as lane {i + 1} {{\n" + f"    y[i{i}] = x[i{i}]\n" * 10 + "  }\n" for i in range(n)) + "}\n",
    "depend": lambda n: PROG + 'kernel "k"\n    as plain out y {\n  for i in 0..8 as lane {\n    let t0: f32 = x[i]\n'
    + "".join(f"    let t{i + 1}: f32 = t{i} + t0\n    y[0] = y[0] + t{i + 1}\n" for i in range(n)) + "    y[0] = 1.0\n  }\n}\n",
}


def write(family, n, path):
    with open(path, "w", encoding="utf-8") as f:
        f.write({**FAMILIES, **TEXTS}[family](n))
