// The errors of a module have its name.
fn half(x: int32) -> int32 { x + "a" }
