// Ways that break, continue or return where data say so: what they have changed is known behind.
let t = tensor([1.0, 2.0, 3.0, 4.0], [2, 2])
let s = tensor_item(tensor_sum(t * 2.0))
let found = 0
let i = 0
while i < 10 {
    i = i + 1
    if s < i * 5.0 { found = 1; break }
}
print(found)
if found == 1 { print(tensor_sum(t @ t)) }
let n = 0
for i in 0..10 {
    if s > i * 1.0 { n = n + 1; continue }
}
print(n)
if n > 3 { print(tensor_sum(t - 1.0)) }
fn probe(k: float64) -> int64 {
    let found = 0
    for i in 0..10 {
        if k < i * 5.0 {
            found = 1
            break
        }
    }
    if found == 1 { print(tensor_sum(t * t)) }
    found
}
print(probe(s))
let mode = 0
fn choose() -> int64 {
    if s > 3.0 { mode = 1; return 1 }
    0
}
print(choose(), mode)
if mode == 1 { print(tensor_mean(t @ t)) }
// the way that goes on is not the one that is walked last
let turns = 0
while true {
    turns = turns + 1
    if s > turns * 4.0 { continue }
    break
}
print(turns)
if turns == 5 { print(tensor_mean(t + 4.0)) }
fn first() -> int64 {
    let k = 0
    while true {
        k = k + 1
        if s < k * 7.0 { break }
        if s > 100.0 { return -1 }
    }
    if k == 3 { print(tensor_max(t * 6.0)) }
    k
}
print(first())
// a loop in a loop: only the inner one is left
let rounds = 0
for a in 0..3 {
    for b in 0..argmax(t) { if s > b * 1.0 { break } }
    rounds = rounds + 1
}
if rounds == 3 { print(tensor_min(t * 5.0)) }

// expect
// 1
// 54.0
// 10
// 6.0
// 30.0
// 1
// 1 1
// 13.5
// 5
// 6.5
// 24.0
// 3
// 5.0
