// A divisor of zero is an error of the run; what was printed stays.
print("first")
let zero = 0.0
print(1.0 / zero)

// expect
// first

// error
// division.ch:4:11: Division by zero
// print(1.0 / zero)
// ^
