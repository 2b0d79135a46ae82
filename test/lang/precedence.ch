// One level for and and or, casts looser than arithmetic, signs tighter than all of it.
let a = [4, 5]
print(1 + 2 * 3 - 4 / 2, (1 + 2) * 3)
print(1 + 2 as float32 / 2.0)
print(-a[0] + 1, not true == false)
print(true or false and false)
print(1 + 1 == 2, 2 < 3 == true)
print((0..3) == [0, 1, 2])

// expect
// 5 9
// 1.5
// -3 true
// false
// true true
// true
