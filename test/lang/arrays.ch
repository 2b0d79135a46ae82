// Arrays are values; indices count from either end; slices are clipped.
let a = [1, 2, 3, 4, 5]
let b = a
b[0] = 9
print(a, b, a[-1], a[1..3], a[1..=3], a[3..100], a[[]], a[-2..0])
print([0; 4], ["x"; 2], [7; 0], a + [6, 7], len(a))
let m = [[1, 2], [3, 4]]
m[1][0] = 30
m[0] = [8, 9]
print(m, m[1][0], [])
print([1, 2.5, "a", [true]])

// expect
// [1, 2, 3, 4, 5] [9, 2, 3, 4, 5] 5 [2, 3] [2, 3, 4] [4, 5] [] []
// [0, 0, 0, 0] [x, x] [] [1, 2, 3, 4, 5, 6, 7] 5
// [[8, 9], [30, 4]] 30 []
// [1, 2.5, a, [true]]
