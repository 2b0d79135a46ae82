// An index out of bounds.
let a = [1, 2, 3]
print(a[2])
print(a[7])

// expect
// 3

// error
// index_bounds.ch:4:9: Index out of bounds: 7
// print(a[7])
// ^
