// An error while it runs is told with the file that it is in.
import "modules/fails.ch" as fails
print(fails.divide(6, 3))
print(fails.divide(1, 0))

// expect
// 2

// error
// fails.ch:2:7: Division by zero
// a / b
// ^
