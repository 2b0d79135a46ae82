// Loops long enough to be compiled: every way through them, and out of them.
fn gcd(a: int64, b: int64) -> int64 {
    while b != 0 {
        let t = a % b
        a = b
        b = t
    }
    return a
}
fn first_above(limit: int64) -> int64 {
    for i in 0..100000 {
        for j in 0..i {
            if i * j > limit { return i * 1000 + j }
        }
    }
    return -1
}
fn collatz(n: int64) -> int64 {
    let steps = 0
    while true {
        if n == 1 { return steps }
        n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 }
        steps = steps + 1
    }
}
fn mean(a: [float64]) -> float64 {
    let s = 0.0
    for x in a { s = s + x }
    s / len(a)
}

// an integer and a float, continue, functions written out
let sum = 0
let x = 0.5
for i in 0..30000 {
    if i % 5 == 0 { continue }
    sum = sum + gcd(i, 360) * 3 - i / 7
    x = x * 0.75 + i
}
print(sum, x)

// integers wrap; remainders have the sign of the left side
let h = 1
let r = 0
for i in -3000..=3000 {
    h = h * 6364136223846793005 + 1442695040888963407
    r = r * 3 + i % 7 + i % -4 - i / -3
}
print(h, r, -7 % 3, 7 % -3)

// break, and what a while defines is there behind it
let k = 0
while k < 1000000 {
    let last = k * k
    if last > 4000000 { break }
    k = k + 1
}
print(k, last)

// nested, with a return from the inner loop
print(first_above(3000000))
let longest = 0
for n in 1..3000 { longest = max(longest, collatz(n)) }
print(longest)

// arrays: elements from both ends, changed, walked
let a = [0; 50]
let f = [0.5; 40]
for i in 0..5000 {
    let at = i % 50
    a[at] = a[at] + a[-1 - at] % 10 + i
    f[i % 40] = f[i % 40] / 2 + at
}
print(a[0], a[49], f[0], f[39], mean(f))
let odd = 0
for v in a {
    for i in 0..100 { if (v + i) % 2 == 1 { odd = odd + 1 } }
}
print(odd)
let is_prime = [true; 2000]
let count = 0
for i in 2..2000 {
    if not is_prime[i] { continue }
    count = count + 1
    let j = i * i
    while j < 2000 {
        is_prime[j] = false
        j = j + i
    }
}
print(count, is_prime[1999])

// conditions that must not be evaluated
let q = 0
let hits = 0
for i in 0..4000 {
    q = i % 3
    if q != 0 and 12 / q > 7 { hits = hits + 1 }
    if q == 0 or 12 / q < 7 { hits = hits + 10 }
}
print(hits)

// the value of a loop is that of its last turn
fn valued(n: int64) {
    let v = 0
    for i in 0..n { v = v + i }
}
fn nothing(n: int64) {
    let v = 0
    while v < n {
        v = v + 1
        if v == 1500 { break }
    }
}
print(valued(3000), valued(0), nothing(2000), nothing(0))

// the counter is the loop's own
let seen = 0
for i in 0..2000 {
    i = i * 2
    seen = seen + i
}
print(seen)

// expect
// -50998298 119982.14857142858
// -1226189390180040532 4554361984507445376 -1 1
// 2001 4004001
// 1734732
// 216
// 247970 252835 33.54838709677419 66.38709677419355 54.80645161290327
// 2500
// 303 true
// 28003
// 4498500 null null null
// 3998000
