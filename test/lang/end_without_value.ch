// A declared result that a path does not give, and lengths of what has none.
fn sign(x: int32) -> int32 {
    if x > 0 { return 1 } else if x < 0 { return -1 }
}
fn absolute(x: int32) -> int32 {
    if x > 0 { return x }
    -x
}
print(len(5), sign(1), absolute(-2))

// error
// end_without_value.ch:3:5: the function returns integer, but may end here without a value
// if x > 0 { return 1 } else if x < 0 { return -1 }
// ^
// hint: an else, or a return behind it, gives one
// end_without_value.ch:9:11: len() takes an array, a string or a tensor here, found integer
// print(len(5), sign(1), absolute(-2))
// ^
