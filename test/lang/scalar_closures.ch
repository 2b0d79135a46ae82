// Functions with what they took along, handed on and called in loops that run often: what they took is what was there when they were made.
fn adder(k: int64) { fn(x: int64) -> int64 { x + k } }
let add = adder(3)
let s = 0
for i in 0..3000 { s = s + add(i) }
print(s)
add = adder(-2)
for i in 0..3000 { s = s + add(i) }
print(s)
fn sum_of(f: fn(int64) -> int64, n: int64) -> int64 {
    let t = 0
    for i in 0..n { t = t + f(i) }
    t
}
let u = 0
for i in 0..1500 { u = u + sum_of(add, 10) - sum_of(fn(x: int64) -> int64 { x * i }, 5) }
print(u)
// made in the loop, one in another; what changes behind it is not seen, and what it changes is its own
let w = 0
for i in 0..1500 {
    let k = i
    let square = fn(x: int64) -> int64 {
        k = k + 1
        x * x + k
    }
    k = 1000000
    fn inner(y: int64) -> int64 { square(y) + square(y) }
    for j in 0..4 { w = w + inner(j) }
}
print(w)
// floats, booleans, arrays and functions in functions are taken along
fn maker(scale: float64, on: bool, table: [float64]) {
    let twice = fn(x: float64) -> float64 { 2.0 * x * scale }
    fn(i: int64) -> float64 { if on { twice(table[i % len(table)]) } else { -1.0 } }
}
let look = maker(0.5, true, [1.5, 2.5, 4.0])
let dark = maker(0.5, false, [1.5])
let f = 0.0
for i in 0..2000 { f = f + look(i) + dark(i) }
print(f)
// a function that calls itself, with what it took along
fn counter(step: int64) {
    fn down(n: int64) -> int64 { if n <= 0 { 0 } else { 1 + down(n - step) } }
    down
}
let by3 = counter(3)
let d = 0
for i in 0..2000 { d = d + by3(i % 60) }
print(d)
// which function it is depends on the turn: that is walked
let g = 0
for i in 0..2000 {
    let h = if i % 2 == 0 { fn(x: int64) -> int64 { x } } else { fn(x: int64) -> int64 { -x } }
    g = g + h(i)
}
print(g)
let zero = fn(x: int64) -> int64 { 6 / x }
for i in 0..2000 { g = zero(1500 - i) }

// expect
// 4507500
// 9000000
// -11205000
// 9048000
// 3332.0
// 20200
// -1000

// error
// scalar_closures.ch:57:38: Division by zero
// let zero = fn(x: int64) -> int64 { 6 / x }
// ^
