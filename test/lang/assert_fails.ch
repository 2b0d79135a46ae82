// The message of an assertion.
print("before")
assert(1 > 2, "one is not above two")
print("after")

// expect
// before

// error
// assert_fails.ch:3:1: one is not above two
// assert(1 > 2, "one is not above two")
// ^
