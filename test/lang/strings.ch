// Escapes are processed, other pairs stay, strings may span lines.
print("a\tb|c\\d|\"e\"|\q")
print("one
two")
print("x" + "y" + str(1.0) + str([1, 2]), len("h\u00e9"), len("hé"))

// expect
// a	b|c\d|"e"|\q
// one
// two
// xy1.0[1, 2] 7 3
