// return ends the program.
print("one")
return;
print("two")

// expect
// one
