#!/usr/bin/env python3
"""Times programs of the language: scalar loops, recursive calls, nested arrays, closures, structs, strings; with and without types.

    bench/loops.py [ROUNDS]

The programs have 1 to 10 million iterations. Engine ref tests the kinds of all values; vm relies on the types that the checker infers
(docs/language.md). Engines take turns, each in its own process. The minimum CPU time over the rounds counts, including the start. With
OTHER=PROGRAM, that ingot is timed, too. All must print the same.
"""
import os
import sys
import tempfile
import timer

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INGOT = os.environ.get("INGOT", os.path.join(ROOT, "build", "ingot"))
ENGINES = ("ref", "vm")
OTHER = os.environ.get("OTHER")
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
    "structs, 1M copies": """struct P { x: float64, y: float64 }
fn step(p: P, d: float64) -> P { P { x: p.x + d, y: p.y * 0.5 + p.x } }
let p = P { x: 0.0, y: 1.0 }
for i in 0..1000000 { p = step(p, 0.5) }
print(p.x, p.y)
""",
    "strings, 1M matches": """let n = 0
for i in 0..1000000 {
    let word = match i % 3 { 0 => "fizz", 1 => "one", k => str(k) }
    n = n + len(word)
}
print(n)
""",
    "variables of the file, 2M calls": """let count = 0
let sum = 0.0
let xs = [1.0, 2.0, 3.0, 4.0]
fn tick(i: int64) {
    count = count + 1
    sum = sum + xs[i % 4]
}
for i in 0..2000000 { tick(i) }
print(count, sum)
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


def once(path, exe, engine):
    seconds, got = timer.child([exe, "run", path, "--engine", engine])
    return seconds, got.stdout


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    columns = [(e, INGOT, e) for e in ENGINES] + ([("other", OTHER, "vm")] if OTHER else [])
    print(f"{'seconds of CPU time':34}" + "".join(f"{label:>16}" for label, _, _ in columns))
    with tempfile.TemporaryDirectory() as folder:
        for name, text in PROGRAMS.items():
            path = os.path.join(folder, "loop.ch")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            best, said = {}, set()
            for _ in range(rounds):
                for label, exe, engine in columns:
                    s, out = once(path, exe, engine)
                    best[label] = min(s, best.get(label, s))
                    said.add(out)
            if len(said) != 1:
                sys.exit(f"{name}: outputs differ: {said}")
            print(f"{name:34}" + "".join(f"{best[label]:8.3f} {best['ref'] / best[label]:6.1f}x" for label, _, _ in columns), flush=True)


if __name__ == "__main__":
    main()
