// What is pushed joins the elements: an int and a float in one array are floats. Elements and fields are places too.
let a = [1, 2]
push(a, 2.5)
print(a)
let rows = [[1], [2]]
push(rows[0], 5)
print(rows, pop(rows[1]), rows)
let none = []
push(none, "x")
print(none, len(none))
let strict: [int32] = [1]
fn fill(n: int32) {
    let out = []
    for i in 0..n { push(out, i * i) }
    out
}
print(fill(4), strict)

// expect
// [1.0, 2.0, 2.5]
// [[1, 5], [2]] 2 [[1, 5], []]
// [x] 1
// [0, 1, 4, 9] [1]
