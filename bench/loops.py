#!/usr/bin/env python3
"""Compares the tree walker of the language with vm, jit and c: scalar loops, recursive calls, nested arrays and closures.

    bench/loops.py [ROUNDS]

The programs have 1 to 10 million iterations. Engine ref walks the tree; the others compile hot code (docs/language.md). Engines take turns,
each in its own process. The minimum CPU time over the rounds counts, including start and compilation. All must print the same.
"""
import os
import sys
import tempfile
import timer

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INGOT = os.environ.get("INGOT", os.path.join(ROOT, "build", "ingot"))
ENGINES = ("ref", "vm", "jit", "c")
PROGRAMS = {
    "nested sums, 5M turns": """let sum = 0
let x = 0.5
for i in 0..1000 {
    for j in 0..5000 {
        sum = sum + i * j - j / 3
        x = x * 0.5 + j
    }
}
print(sum, x)
""",
    "collatz, 3M turns": """fn steps(n: int64) -> int64 {
    let k = 0
    while n != 1 {
        n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 }
        k = k + 1
    }
    k
}
let longest = 0
for n in 1..30000 { longest = max(longest, steps(n)) }
print(longest)
""",
    "sieve, 5M turns": """let is_prime = [true; 2000000]
let count = 0
for i in 2..2000000 {
    if is_prime[i] {
        count = count + 1
        let j = i * i
        while j < 2000000 {
            is_prime[j] = false
            j = j + i
        }
    }
}
print(count)
""",
    "mandelbrot, 10M turns": """let inside = 0
for y in 0..300 {
    for x in 0..300 {
        let cr = x / 150.0 - 1.5
        let ci = y / 150.0 - 1.0
        let a = 0.0
        let b = 0.0
        let n = 0
        while n < 300 and a * a + b * b < 4.0 {
            let t = a * a - b * b + cr
            b = 2.0 * a * b + ci
            a = t
            n = n + 1
        }
        if n == 300 { inside = inside + 1 }
    }
}
print(inside)
""",
    "fib(31), 4M calls": """fn fib(n: int64) -> int64 { if n < 2 { n } else { fib(n - 1) + fib(n - 2) } }
print(fib(31))
""",
    "even and odd, 6M calls": """fn even(n: int64) -> bool { if n == 0 { true } else { odd(n - 1) } }
fn odd(n: int64) -> bool { if n == 0 { false } else { even(n - 1) } }
let count = 0
for i in 0..60000 {
    if even(i % 200) { count = count + 1 }
}
print(count)
""",
    "nested arrays, 5M turns": """let a = [[0.0; 170]; 170]
let b = [[0.0; 170]; 170]
let c = [[0.0; 170]; 170]
for i in 0..170 {
    for j in 0..170 {
        a[i][j] = i + j * 0.5
        b[i][j] = i - j * 0.25
    }
}
for i in 0..170 {
    for j in 0..170 {
        let sum = 0.0
        for k in 0..170 { sum = sum + a[i][k] * b[k][j] }
        c[i][j] = sum
    }
}
print(c[3][4], c[169][169])
""",
    "closures, 6M calls": """fn integrate(f: fn(float64) -> float64, to: float64, n: int64) -> float64 {
    let h = to / n
    let sum = 0.0
    for i in 0..n { sum = sum + f((i + 0.5) * h) }
    sum * h
}
let total = 0.0
for k in 1..=60 {
    let scale = k * 0.5
    total = total + integrate(fn(x: float64) -> float64 { scale * x * x + 1.0 }, 1.0, 100000)
}
print(total)
""",
}


def once(path, engine):
    seconds, got = timer.child([INGOT, "run", path, "--engine", engine])
    return seconds, got.stdout


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print(f"{'seconds of processor time':28}" + "".join(f"{e:>16}" for e in ENGINES))
    with tempfile.TemporaryDirectory() as folder:
        for name, text in PROGRAMS.items():
            path = os.path.join(folder, "loop.ch")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            best, said = {}, set()
            for _ in range(rounds):
                for engine in ENGINES:
                    s, out = once(path, engine)
                    best[engine] = min(s, best.get(engine, s))
                    said.add(out)
            if len(said) != 1:
                sys.exit(f"{name}: engines differ: {said}")
            print(f"{name:28}" + "".join(f"{best[e]:8.3f} {best['ref'] / best[e]:6.1f}x" for e in ENGINES), flush=True)


if __name__ == "__main__":
    main()
