// Values that contradict annotations.
let n: int32 = 2.5
let s: string = 3
fn f(x: int32) -> string { x }
print(f("a"), f(1, 2))
let t: unknown = 1

// error
// annotation_wrong.ch:2:16: the variable is integer, found float
// let n: int32 = 2.5
// ^
// hint: x as int32 drops the fraction
// annotation_wrong.ch:3:17: the variable is string, found integer
// let s: string = 3
// ^
// hint: str(x) makes a string of it
// annotation_wrong.ch:4:28: the function returns string, found integer
// fn f(x: int32) -> string { x }
// ^
// hint: str(x) makes a string of it
// annotation_wrong.ch:5:9: the parameter is integer, found string
// print(f("a"), f(1, 2))
// ^
// annotation_wrong.ch:5:15: Wrong number of arguments: expected 1, got 2
// print(f("a"), f(1, 2))
// ^
// annotation_wrong.ch:6:8: unknown type 'unknown'
// let t: unknown = 1
// ^
// hint: types are int32 int64 float32 float64 bool string tensor [T] (T, U) fn(T) -> U
