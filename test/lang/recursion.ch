// Functions call themselves and those defined below.
fn fact(n: int64) -> int64 { if n < 2 { 1 } else { n * fact(n - 1) } }
fn even(n: int32) -> bool { if n == 0 { return true } return odd(n - 1) }
fn odd(n: int32) -> bool { if n == 0 { return false } return even(n - 1) }
print(fact(20), even(10), odd(7), later())
fn later() { "defined below" }

// expect
// 2432902008176640000 true true defined below
