// Functions of numbers that call themselves often are compiled; what they do, and where they fail, is the same.
fn fib(n: int64) -> int64 { if n < 2 { n } else { fib(n - 1) + fib(n - 2) } }
print(fib(19), fib(20), fib(1))
fn ack(m: int64, n: int64) -> int64 {
    if m == 0 { return n + 1 }
    if n == 0 { return ack(m - 1, 1) }
    ack(m - 1, ack(m, n - 1))
}
print(ack(2, 20), ack(1, 300))
fn power(x: float64, n: int64) -> float64 {
    if n == 0 {
        1.0
    } else if n % 2 == 1 {
        x * power(x, n - 1)
    } else {
        let h = power(x, n / 2)
        h * h
    }
}
let t = 0.0
for i in 0..1500 { t = t + power(1.001, i) }
print(t, power(2, 10))
fn tak(x: int64, y: int64, z: int64) -> int64 {
    if y >= x { z } else { tak(tak(x - 1, y, z), tak(y - 1, z, x), tak(z - 1, x, y)) }
}
print(tak(11, 7, 2))
// loops in it, and calls in loops
fn ways(n: int64, most: int64) -> int64 {
    if n == 0 { return 1 }
    let sum = 0
    for k in 1..=most {
        if k <= n { sum = sum + ways(n - k, k) }
    }
    sum
}
print(ways(18, 5), ways(12, 4))
// another function that calls it back, and one that is not its own
fn even(n: int64) -> bool { if n == 0 { true } else { odd(n - 1) } }
fn odd(n: int64) -> bool { if n == 0 { false } else { even(n - 1) } }
let count = 0
for i in 0..2000 { if even(i % 20) { count = count + 1 } }
print(count)
fn twice(n: int64) -> int64 { 2 * n }
fn sum_to(n: int64) -> int64 { if n == 0 { 0 } else { twice(n) + sum_to(n - 1) } }
let all = 0
for i in 0..1500 { all = all + sum_to(i % 50) }
print(all, sum_to(900))
// what is outside can be read, and where it is changed the tree is walked
let step = 3
fn down(n: int64) -> int64 { if n <= 0 { n } else { down(n - step) } }
let calls = 0
fn counts(n: int64) -> int64 {
    calls = calls + 1
    if n < 2 { 1 } else { counts(n - 1) + counts(n - 2) }
}
let last = 0
for i in 0..1200 { last = last + down(i) }
print(last, counts(16), calls)
// of other kinds, and wrapped
fn grow(x: float64, n: int64) -> float64 { if n == 0 { x } else { grow(x * 3 + n, n - 1) / 2 } }
fn wrap(x: int64, n: int64) -> int64 { if n == 0 { x } else { wrap(x * 6364136223846793005 + n, n - 1) } }
let g = 0.0
let w = 0
for i in 0..1100 {
    g = g + grow(i, i % 30)
    w = w + wrap(i, i % 40)
}
print(g, w)
fn bad(n: int64) -> int64 { if n == 0 { 10 / (step - 3) } else { bad(n - 1) + bad(n - 1) } }
step = 4
print(bad(10))
step = 3
print(bad(10))

// expect
// 4181 6765 1
// 43 302
// 3478.3313011819464 1024.0
// 3
// 141 34
// 1000
// 1249500 810900
// -1200 1597 3193
// 7811195498.661755 3023522702837917888
// 10240

// error
// scalar_recursion.ch:69:44: Division by zero
// fn bad(n: int64) -> int64 { if n == 0 { 10 / (step - 3) } else { bad(n - 1) + bad(n - 1) } }
// ^
