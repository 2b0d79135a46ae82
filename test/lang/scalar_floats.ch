// Numbers that are none, signs of zero, rounding, in loops that are compiled.
let huge = 1e300
let inf = huge * huge
let nan = inf - inf
let n = [0, 0, 0, 0, 0, 0, 0, 0]
let w = 0.0
for i in 0..3000 {
    let x = if i % 3 == 0 { nan } else { i * 0.5 }
    if x < 10.0 { n[0] = n[0] + 1 }
    if not (x < 10.0) { n[1] = n[1] + 1 }
    if x == x { n[2] = n[2] + 1 }
    if x != x { n[3] = n[3] + 1 }
    if x >= 10.0 or x <= 10.0 { n[4] = n[4] + 1 }
    if x as bool { n[5] = n[5] + 1 }
    n[6] = n[6] + (x as int64)
    n[7] = (inf as int64) - (-inf as int64) + i
    w = max(min(x, 100.0), w)
}
print(n, w, max(nan, 1.0), min(2.0, nan))
let zero = -0.0
let signs = 0.0
for i in 0..2000 {
    zero = -zero
    signs = signs + 1.0 / (max(zero, 0.0) + 2.0) + 1.0 / (zero - 4.0)
}
print(signs, zero)
let y = 0.1
for i in 1..2500 {
    y = sin(y) + cos(i) * exp(-abs(y)) + tan(y / 30.0) - sqrt(abs(y)) / 2 + pow(1.0 + 1.0 / i, y)
    y = y - log(i) / 20
}
print(y)
// an integer on one path, a float on the other: a float
let mixed = 0
for i in 0..2000 {
    mixed = if i % 2 == 0 { i } else { i / 2.0 }
}
print(mixed, 9007199254740993 == 9007199254740992.0)
let same = 0
for i in 0..2000 {
    if 9007199254740993 + i == 9007199254740992.0 + i { same = same + 1 }
    if true == (i > 5) { same = same + 1 }
}
print(same)

// expect
// [13, 2987, 2000, 1000, 2000, 3000, 1499500, 2998] 100.0 1.0 2.0
// 500.0 -0.0
// 0.608758659327194
// 999.5 true
// 2994
