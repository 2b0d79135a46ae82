// Wrong number of arguments, and what is no function.
fn f(a: int32) -> int32 { a }
let n = 3
print(f(), f(1, 2), n(1), len(1, 2))

// error
// call_wrong.ch:4:7: Wrong number of arguments: expected 1, got 0
// print(f(), f(1, 2), n(1), len(1, 2))
// ^
// call_wrong.ch:4:12: Wrong number of arguments: expected 1, got 2
// print(f(), f(1, 2), n(1), len(1, 2))
// ^
// call_wrong.ch:4:21: Cannot call non-function value: integer
// print(f(), f(1, 2), n(1), len(1, 2))
// ^
// call_wrong.ch:4:27: len() takes exactly 1 argument, got 2
// print(f(), f(1, 2), n(1), len(1, 2))
// ^
