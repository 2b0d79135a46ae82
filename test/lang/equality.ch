// Numbers are equal by value, arrays and tensors by contents; other kinds never.
print(1 == 1.0, "a" == "a", "1" == 1, [1, [2]] == [1, [2]], (1, 2) == (1, 3), [] != [0])
print(tensor([1.0, 2.0]) == tensor([1.0, 2.0]), tensor([1.0]) == tensor([1.0], [1, 1]))

// expect
// true true false true false true
// true false
