// Expanded functions get variables of the caller as arguments. A value of another kind than expected is converted in the
// call, and the variable keeps it.
fn half(x: float) -> float { return x / 2.0 }
fn third(x: float) -> float { x / 3.0 }
fn at_least(x: float) -> float {
    if x < 2.0 { return 2.0 }
    x
}
fn both(x: float) -> float { half(x) + third(x) }
fn after(f: fn(float) -> float, x: float) -> float { f(x) }

// the variable is used after the call
fn negative(v) {
    let a = half(v)
    return -v
}
fn negative_last(v) {
    let a = third(v)
    return -v
}
fn element(v) {
    let a = half(v)
    return [v][0]
}
fn compare(v) {
    let a = half(v)
    if v == 3 { return "three" }
    "other"
}
fn early(v) {
    let a = at_least(v)
    return (a, v, v / 2)
}
fn nested(v) {
    let a = both(v)
    return (v / 2, -v)
}
fn argument(v) {
    let a = half(third(v) + half(v))
    v / 2
}
fn twice(v) {
    let a = half(v)
    let b = half(v)
    return (v / 2, half(v))
}
fn captured(v, w) {
    let f = fn(x: float) -> float { x * 2.0 + w }
    let a = f(v)
    let b = after(f, v)
    return (v / 2, w / 2, a == b)
}
fn chosen(v, c: bool) {
    let a = 0.0
    if c { a = half(v) }
    if third(v) > 100.0 or half(v) > 100.0 { return 0 }
    v / 2
}
fn repeated(v) {
    let sum = 0
    for i in 0..3 {
        let a = half(v)
        sum = sum + v / 2
    }
    sum
}
print(negative(3), negative_last(3), element(3), compare(3), early(3), nested(3))
print(argument(3), twice(3), captured(3, 5), chosen(3, true), chosen(3, false), repeated(3))
for i in 0..2 {
    print(negative(3), negative_last(3), element(3), compare(3), early(3), nested(3))
    print(argument(3), twice(3), captured(3, 5), chosen(3, true), chosen(3, false), repeated(3))
}

// a variable of the file, which a function in a condition sets
let level = 0.5
fn settle(x) -> bool {
    level = x
    false
}
fn raise(x) -> bool {
    level = x
    true
}
for i in 0..2 {
    level = 0.5
    if settle(3) or level > 100.0 { print("high") } else { print(-level, level / 2) }
    level = 0.5
    if raise(3) and level > 1.0 { print(-level, level / 2) } else { print("low") }
    level = 0.5
    if not raise(3) or level < 1.0 { print("low") } else { print(-level, level / 2) }
    level = 0.5
    print(raise(3) and level > 2.0, settle(3) or level < 1.0, level / 2)
}

// expect
// -3 -3 3 three (3.0, 3, 1) (1, -3)
// 1 (1, 1.5) (1, 2, true) 1 1 3
// -3 -3 3 three (3.0, 3, 1) (1, -3)
// 1 (1, 1.5) (1, 2, true) 1 1 3
// -3 -3 3 three (3.0, 3, 1) (1, -3)
// 1 (1, 1.5) (1, 2, true) 1 1 3
// -3 1
// -3 1
// -3 1
// true false 1
// -3 1
// -3 1
// -3 1
// true false 1
