// Its functions change its variables; it is imported twice and runs once.
print("counter runs")
let count = 0
fn next() -> int32 {
    count = count + 1
    count
}
