// Lists whose lengths follow from data: what is in them is not known before the run.
let t = tensor([1.0, 2.0, 3.0, 4.0], [2, 2])
let s = tensor_item(tensor_sum(t * 2.0))
let best = []
let i = 0
while i < 5 {
    i = i + 1
    if s < 100.0 { push(best, i) }
}
print(len(best))
if len(best) == 5 { print(tensor_sum(t @ t)) }
let d = [1, 2, 3]
if s > 3.0 { d = [4, 5] }
for x in d { if x == 3 { print(tensor_sum(t * t)) } else { print(x) } }
for x in [4, 5, 6] { if x == d[0] { print(tensor_sum(t - 5.0)) } }
let e = [1, 2]
if s > 3.0 { e = [7, 8, 9] }
let n = 0
for x in e { n = n + x }
if n == 24 { print(tensor_mean(t * 3.0)) }
// of one shape on one way and of another on the other, but nobody looks
let y = t
if s > 3.0 { y = tensor_ones([3]) } else { y = tensor_ones([4]) }
y = t + 1.0
print(tensor_sum(y))

// expect
// 5
// 54.0
// 4
// 5
// -10.0
// 7.5
// 14.0
