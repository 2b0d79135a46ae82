// Integers have 64 bits.
print(99999999999999999999)

// error
// number_too_large.ch:2:7: the number is too large for an integer
// print(99999999999999999999)
// ^
// hint: integers have 64 bits; a float has a point in it
