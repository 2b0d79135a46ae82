// Casts truncate and saturate; booleans are 0 and 1.
print(3.99 as int32, -3.99 as int64, 1e30 as int64, true as int32, 5 as float32, 0.5 as bool, 0 as bool)

// expect
// 3 -3 9223372036854775807 1 5.0 true false
