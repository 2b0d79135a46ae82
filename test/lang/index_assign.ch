// Assignment beyond the end.
let a = [1, 2, 3]
a[7] = 1

// error
// index_assign.ch:3:3: Index 7 out of bounds (len=3)
// a[7] = 1
// ^
