// What a variable without a type holds is known when the loop runs, and may be another thing each time.
fn twice(n, x) {
    let s = x
    for i in 0..n { s = s + x }
    s
}
print(twice(2000, 3), twice(2000, 0.25), twice(3, "ab"), twice(2000, 7))
print(twice(1500, true))

// expect
// 6003 500.25 abababab 14007

// error
// scalar_kinds.ch:4:27: Cannot add boolean and boolean
// for i in 0..n { s = s + x }
// ^
