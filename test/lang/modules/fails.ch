fn divide(a: int32, b: int32) -> int32 {
    a / b
}
