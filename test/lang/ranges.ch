// Ranges are arrays; loops over them need no memory.
print(0..5, 0..=3, 3..3, 2.9..5.1, range(3), range(1, 4), range(10, 0, -3))
let sum = 0
for i in 0..1000000 { sum = sum + i }
print(sum)
for i in 5..0 { print("never") }

// expect
// [0, 1, 2, 3, 4] [0, 1, 2, 3] [] [2, 3, 4] [0, 1, 2] [1, 2, 3] [10, 7, 4, 1]
// 499999500000
