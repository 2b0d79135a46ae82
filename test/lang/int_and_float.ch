// A variable that holds an int on one path and a float on another is a float; so are elements.
let r = 0.0
if 1 < 2 { r = 2 * 3 }
print(r)
let s = 1
print(s)
s = s / 2.0
let a = [0; 3]
print(a)
a[1] = 2.5
print(a)
fn half(x: float32) -> float32 { if x > 1.0 { x / 2.0 } else { 0 } }
print(half(0.5), half(3))
let i = 0
let j = 0
while j < 2 { i = i + 0.5 j = j + 1 }
print(i, j)
let q = if r > 1.0 { 1 } else { 2.5 }
print(q, [1, 2.5])

// expect
// 6.0
// 1.0
// [0.0, 0.0, 0.0]
// [0.0, 2.5, 0.0]
// 0.0 1.5
// 1.0 2
// 1.0 [1.0, 2.5]
