// Arrays grow in place, but what others hold stays as it is.
let a = []
for i in 0..200000 { push(a, i) }
let b = a
push(a, 7)
print(len(a), len(b), pop(a), pop(b), len(a), len(b))
let s = 0
while len(a) > 0 { s = s + pop(a) }
print(s, a, len(b), b[0], b[-1])
let c = push([1, 2], 3)
let d = [c, c]
push(c, "x")
print(c, d, pop([4, 5]))

// expect
// 200001 200000 7 199999 200000 199999
// 19999900000 [] 199999 0 199998
// [1, 2, 3, x] [[1, 2, 3], [1, 2, 3]] 5
