// Values of calls: return, or the last statement; functions are values.
fn add(a: int32, b: int32) -> int32 { return a + b }
fn last(a: int32) { let b = a * 2 b + 1 }
fn early(x: int32) -> string { if x > 0 { return "positive" } "not" }
let f = add
print(add(1, 2), last(3), early(1), early(-1), f(5, 6), f)
fn nothing() { }
print(nothing())
print((fn(x: int32) -> int32 { x * x })(7))

// expect
// 3 7 positive not 11 <function>
// null
// 49
