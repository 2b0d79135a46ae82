// What a loop has that is more than numbers leaves it to the tree walk, and the loops in it are compiled.
fn work(n: int64) -> float64 {
    let s = 0.0
    for i in 1..n { s = s + 1.0 / i }
    s
}
fn fib(n: int64) -> int64 { if n < 2 { n } else { fib(n - 1) + fib(n - 2) } }
fn chatty(n: int64) -> int64 {
    if n % 1000 == 0 { print("at", n) }
    n * 2
}
let total = 0
for i in 0..3000 {
    total = total + chatty(i)
}
print(total)
for i in 0..3 { print(i, work(5000)) }
let text = ""
let words = 0
for i in 0..3000 {
    if i % 500 == 0 { text = text + str(i) + " " }
    words = words + len(text)
}
print(text, words)
print(fib(15))
let grown = []
for i in 0..1500 { push(grown, i * i) }
let sum = 0
for g in grown { sum = sum + g }
print(len(grown), sum)
let calls = 0
fn count() { calls = calls + 1 }
for i in 0..2500 {
    count()
    if i == 2000 { calls = calls * 2 }
}
print(calls)
let add = fn(a: int64) -> int64 { a + calls }
let made = 0
for i in 0..2000 { made = made + add(i) }
print(made)
// defined on one path only
let last = 0
for i in 0..2000 {
    if i > 1500 { let late = i * 2 }
    if i > 1800 { last = late }
}
print(last)

// expect
// at 0
// at 1000
// at 2000
// 8997000
// 0 9.094308852984405
// 1 9.094308852984405
// 2 9.094308852984405
// 0 500 1000 1500 2000 2500  41000
// 610
// 1500 1123875250
// 4501
// 11001000
// 3998
