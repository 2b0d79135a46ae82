// Functions that call themselves, and loops that end, when data say so.
fn fib(n: int64) -> int64 { if n < 2 { n } else { fib(n - 1) + fib(n - 2) } }
let t = tensor([0.1, 0.7, 0.2, 0.3])
print(fib(argmax(t * 2.0) + 9))
fn halve(x: tensor) -> tensor { if tensor_sum(x) < 1.0 { x } else { halve(x / 2.0) } }
print(halve(t * 100.0))
fn norm(x: tensor) -> float64 { sqrt(tensor_sum(x * x)) }
let x = t
let n = 0
while norm(x) > 0.01 {
    x = x * 0.5 + 0.001
    n = n + 1
    if n > 30 { break }
}
print(n, norm(x))
let a = [t, t * 2.0, t + 1.0]
let i = argmax(t)
print(a[i] * 3.0, tensor_sum(a[i] @ tensor_ones([4, 1])))
assert(tensor_sum(t) > 0.0, "positive")
let label = "small"
if tensor_max(t * 3.0) > 2.0 { label = "large" } else if tensor_max(t) > 1.0 { label = "middle" }
print(label)
let s = 0.0
for k in 0..4 {
    if t[k] < 0.15 { continue }
    s = s + t[k]
}
print(s, abs(s), max(s, 1.0), min(tensor_item(t[0..1]), 0.5), pow(s, 2.0))

// expect
// 55
// AutogradTensor([0.0390625, 0.2734375, 0.078125, 0.1171875], shape=[4])
// 7 0.009721663550416667
// AutogradTensor([0.6000000000000001, 4.199999999999999, 1.2000000000000002, 1.7999999999999998], shape=[4]) 2.6
// large
// 1.2 1.2 1.2 0.1 1.44
