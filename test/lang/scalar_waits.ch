// What follows a call that has no result yet is not computed: a loop over it would not end, and a division by it fail.
fn grow(n: int64) -> int64 {
    if n <= 0 { return 1 }
    let r = grow(n - 1)
    while r < 100 { r = r * 2 }
    r
}
fn inside(n: int64) -> int64 {
    if n <= 0 { return 1 }
    let r = 0
    if n % 2 == 0 { r = inside(n - 1) } else { r = 2 * inside(n - 1) }
    while r < 50 { r = r + r }
    for i in 0..3 {
        let k = inside(n - 2 - i)
        while k < 9 { k = k + k }
        r = r + k % 5
    }
    r
}
fn ratio(n: int64) -> int64 { if n <= 0 { 7 } else { 100 / ratio(n - 1) } }
fn chosen(n: int64) -> int64 { if n <= 1 { 8 } else { 40 / if n % 2 == 0 { chosen(n - 1) } else { chosen(n - 2) + chosen(n - 1) } } }
fn both(n: int64) -> int64 {
    if n <= 0 { return 3 }
    if n > 2 and 9 / both(n - 1) > 0 { 9 / both(n - 2) } else { 3 }
}
fn waits(n: int64) -> int64 {
    if n <= 0 { return 3 }
    let turns = 0
    while 12 / waits(n - 1) > turns { turns = turns + 1 }
    turns
}
let s = 0
for i in 0..3000 {
    s = s + grow(3) % 7 + inside(3) % 11 + ratio(i % 9) + chosen(i % 6) + both(i % 5) + waits(i % 4)
    if i % 1000 == 0 { print(s) }
}
print(s)

// expect
// 24
// 26142
// 52247
// 78331
