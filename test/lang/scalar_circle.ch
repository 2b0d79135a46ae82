// Functions of numbers that call each other are compiled together; what they do, and where they fail, is the same.
fn even(n: int64) -> bool { if n == 0 { true } else { odd(n - 1) } }
fn odd(n: int64) -> bool { if n == 0 { false } else { even(n - 1) } }
let count = 0
for i in 0..2500 { if even(i % 40) { count = count + 1 } }
print(count, odd(7), even(255), even(900))
fn female(n: int64) -> int64 { if n == 0 { 1 } else { n - male(female(n - 1)) } }
fn male(n: int64) -> int64 { if n == 0 { 0 } else { n - female(male(n - 1)) } }
print(female(20), male(20), female(30))
// three of several kinds, with one that is written out and one of the file that is read
let half = 0.5
fn scaled(x: float64) -> float64 { x * half }
fn first(n: int64, x: float64) -> float64 {
    if n <= 0 { return x }
    let sum = 0.0
    for k in 0..2 { sum = sum + second(n - 1 - k) }
    scaled(sum) + x
}
fn second(n: int64) -> float64 { if n <= 0 or third(n, n > 3) { 0.5 } else { first(n - 2, 0.25) } }
fn third(n: int64, far: bool) -> bool { if far { second(n - 4) > 0.75 } else { false } }
let total = 0.0
for i in 0..1500 { total = total + first(i % 20, 1.0) }
print(total, first(9, 2))
// kinds differ from call to call, and one changes what is outside: those are walked
fn ping(x: any, n: int64) -> any { if n == 0 { x } else { pong(x, n - 1) } }
fn pong(x: any, n: int64) -> any { if n == 0 { x } else { ping(x + 0.5, n - 1) } }
let calls = 0
fn up(n: int64) -> int64 {
    calls = calls + 1
    if n == 0 { 0 } else { down(n - 1) + 1 }
}
fn down(n: int64) -> int64 { if n == 0 { 0 } else { up(n - 1) + 1 } }
let sum = 0
for i in 0..1200 { sum = sum + up(i % 9) }
print(ping(1, 4), pong(2.5, 3), sum, calls)
// a failure inside is told where it is
fn left(n: int64) -> int64 { if n > 50 { 100 / (n - 60) } else { right(n + 1) } }
fn right(n: int64) -> int64 { left(n + 1) * 2 }
let last = 0
for i in 0..1300 { last = last + left(i % 50) % 1000 }
print(last)
for i in 1..1300 { last = left(60 - i % 2) }

// expect
// 1250 true false true
// 13 12 19
// 2421.09375 2.875
// 2.0 3.5 4791 3329
// -550420

// error
// scalar_circle.ch:37:46: Division by zero
// fn left(n: int64) -> int64 { if n > 50 { 100 / (n - 60) } else { right(n + 1) } }
// ^
