// and and or look at their right side only if they need it.
fn loud(x: bool) -> bool { print("asked") x }
print(false and loud(true), true or loud(false))
print(true && loud(false), false || loud(true))
print(!true, not 0, not "", not [])

// expect
// false true
// asked
// asked
// false true
// false true false false
