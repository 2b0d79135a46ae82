// There is no argument of that name.
fn f(a: int32, b: int32) -> int32 { a - b }
print(f(1, c: 2))

// error
// named_wrong.ch:3:12: unknown argument 'c'
// print(f(1, c: 2))
// ^
// hint: a b
