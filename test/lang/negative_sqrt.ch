// Functions that have no value there.
print(sqrt(4))
print(sqrt(-1.0))

// expect
// 2.0

// error
// negative_sqrt.ch:3:7: sqrt() of a negative number
// print(sqrt(-1.0))
// ^
