// Declared results that a path does not give, and lengths of what has none.
fn sign(x: int32) -> int32 {
    if x > 0 { return 1 } else if x < 0 { return -1 }
}
fn absolute(x: int32) -> int32 {
    if x > 0 { return x }
    -x
}
fn says(x: int32) -> int32 {
    if x > 0 { 1 } else { print("no") }
}
fn first(n: int32) -> int32 {
    while n < 3 { return n }
}
fn above(n: int32) -> int32 {
    while true {
        n = n + 1
        if n > 5 { return n }
    }
}
fn total(n: int32) -> int32 {
    let s = 0
    for i in 0..n { s = s + i }
}
print(len(5), sign(1), absolute(-2), says(1), first(1), above(1), total(3))

// error
// end_without_value.ch:3:5: the function returns integer, but may end here without a value
// if x > 0 { return 1 } else if x < 0 { return -1 }
// ^
// hint: add a return after it
// end_without_value.ch:10:5: the function returns integer, but may end here without a value
// end_without_value.ch:13:5: the function returns integer, but may end here without a value
// end_without_value.ch:25:11: len() takes an array, a tuple, a string or a tensor here, found integer
// ^
