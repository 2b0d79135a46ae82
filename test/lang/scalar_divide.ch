// A division that fails in compiled code fails where the tree walk does, behind the same prints.
let calls = 0
fn ratio(a: int64, b: int64) -> int64 {
    calls = calls + 1
    a / (b - 4000)
}
fn run() {
    let s = 0
    for i in 0..3000 { s = s + ratio(i, i + 1) }
    print(s, calls)
    for i in 0..10000 {
        s = s + ratio(100, i)
    }
    print("never")
}
run()

// expect
// -1334 3000

// error
// scalar_divide.ch:5:7: Division by zero
// a / (b - 4000)
// ^
