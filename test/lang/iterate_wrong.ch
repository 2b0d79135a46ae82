// Loops walk arrays.
for c in "abc" { print(c) }

// error
// iterate_wrong.ch:2:10: Cannot iterate over type string
// for c in "abc" { print(c) }
// ^
// hint: loops walk arrays and ranges such as 0..10
