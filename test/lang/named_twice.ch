// An argument is given by its name twice.
fn f(a: int32, b: int32) -> int32 { a - b }
print(f(b: 1, b: 2))

// error
// named_twice.ch:3:9: the argument 'b' is given twice
// print(f(b: 1, b: 2))
// ^
