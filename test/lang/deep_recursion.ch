// A recursion without end is an error, not a crash.
fn down(n: int32) -> int32 { return down(n + 1) }
print("begin")
print(down(0))

// expect
// begin

// error
// deep_recursion.ch:2:37: calls are nested too deeply
// fn down(n: int32) -> int32 { return down(n + 1) }
// ^
