// Calls of small functions, which the lowering expands where they probably go: values, order of effects, errors.
let count = 0
let trace = [0; 4]
fn tick(n: int64) -> int64 {
    count = count + n
    trace[n % 4] = count
    count
}
fn twice(x: float64) -> float64 { x + x }
fn half(n: int64) -> float64 { n / 2 }
fn sign(n: int64) -> int64 {
    if n < 0 { return -1 }
    if n == 0 { return 0 }
    let k = n
    while k > 1 { return 1 + k * 0 }
    1
}
fn set(a: int64, b: int64) -> int64 {
    a = a + b
    let c = a * 2
    c - b
}
fn any(x) { x }
fn apply(f: fn(float64) -> float64, x: float64) -> float64 { f(f(x)) }
fn sum_of(f: fn(int64) -> int64, n: int64) -> int64 {
    let sum = 0
    for i in 0..n {
        if i == 7 { return sum }
        sum = sum + f(i)
    }
    sum
}
for i in 0..5 {
    let x = tick(i) + tick(i + 1) * 10
    print(i, x, count, trace, sign(i - 2), half(i), twice(half(i)))
    print(set(i, set(i, 2)), i, any(i), any("s"), any([i]))
}
for k in 0..3 {
    let step = k * 0.5
    let name = "n" + str(k)
    print(apply(fn(x: float64) -> float64 { x * step + 1.0 }, k), sum_of(fn(n: int64) -> int64 { n * k }, k * 5))
    print(sum_of(fn(n: int64) -> int64 { len(name) + n }, 3))
}

// another function than at first, and none
let f = twice
for i in 0..3 {
    print(f(i))
    if i == 0 { f = fn(x: float64) -> float64 { x * 100.0 } }
}
fn changes(g: fn(float64) -> float64, x: float64) -> float64 {
    let a = g(x)
    g = fn(y: float64) -> float64 { y - 1.0 }
    a + g(x)
}
for i in 0..2 { print(changes(twice, i)) }

// recursion through a function that is expanded
fn even(n: int64) -> bool { if n == 0 { true } else { odd(n - 1) } }
fn odd(n: int64) -> bool { if n == 0 { false } else { even(n - 1) } }
for i in 0..3 { print(even(i + 100), odd(i)) }
fn down(n: int64, g: fn(int64) -> int64) -> int64 { if n == 0 { 0 } else { g(down(n - 1, g)) } }
print(down(50, fn(x: int64) -> int64 { x + 2 }))

// an error inside keeps its place
fn inverse(n: int64) -> int64 { 12 / n }
for i in 0..3 { print(inverse(2 - i)) }

// expect
// 0 10 1 [0, 1, 0, 0] -1 0.0 0.0
// 2 0 0 s [0]
// 1 42 4 [0, 2, 4, 0] -1 0.0 0.0
// 6 1 1 s [1]
// 2 96 9 [0, 2, 6, 9] 0 1.0 2.0
// 10 2 2 s [2]
// 3 172 16 [16, 2, 6, 12] 1 1.0 2.0
// 14 3 3 s [3]
// 4 270 25 [20, 25, 6, 12] 1 2.0 4.0
// 18 4 4 s [4]
// 1.0 0
// 9
// 1.75 10
// 9
// 4.0 42
// 9
// 0.0
// 100.0
// 200.0
// -1.0
// 2.0
// true false
// false true
// true false
// 100
// 6
// 12

// error
// expanded.ch:66:36: Division by zero
// fn inverse(n: int64) -> int64 { 12 / n }
// ^
