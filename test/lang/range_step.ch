// A step of 0 has no end.
print(range(1, 5, 0))

// error
// range_step.ch:2:7: range(): the step is 0
// print(range(1, 5, 0))
// ^
