// Integers wrap and truncate, a float on either side makes floats, signs of remainders.
print(7 / 2, -7 / 2, 7 % 3, -7 % 3, 7 - 10 * 2)
print(9223372036854775807 + 1)
print(1 + 0.5, 3 * 2.0, 7.0 / 2, 1e3, 2.5e-3)
print(-5, -0.0, 2 - -3)

// expect
// 3 -3 1 -1 -13
// -9223372036854775808
// 1.5 6.0 3.5 1000.0 0.0025
// -5 -0.0 5
