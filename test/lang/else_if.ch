// else if, and break and continue with semicolons.
fn sign(x: int32) -> string {
    if x > 0 { return "+" } else if x < 0 { return "-" } else { return "0" }
}
print(sign(3), sign(-3), sign(0))
for i in 0..10 {
    if i == 2 { continue; }
    if i == 5 { break; }
    print(i)
}
let n = 0
while true { n = n + 1; if n > 3 { break } }
print(n)

// expect
// + - 0
// 0
// 1
// 3
// 4
// 4
