// What a function takes along may be named for the first time inside a loop or an arm of a match, and is still there behind it.
fn times(k: int64) {
    fn(n: int64) -> int64 {
        let s = 0
        for i in 0..n { s = s + k }
        s + k
    }
}
print(times(3)(20))
fn chosen(k: int64) {
    fn(n: int64) -> int64 {
        let first = match n { 1 => 10 + k, _ => k }
        first + k
    }
}
print(chosen(3)(1), chosen(3)(2))
fn outer(k: int64) -> int64 {
    fn inner(n: int64) -> int64 {
        let s = 0
        for i in 0..n { for j in 0..i { s = s + k * j } }
        s
    }
    inner(5) + inner(5)
}
print(outer(2))

// expect
// 63
// 16 6
// 40
