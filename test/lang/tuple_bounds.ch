// An index of a tuple is known before the run.
let t = (1, 2)
print(t.2)

// error
// tuple_bounds.ch:3:9: Tuple index out of bounds: index 2 on tuple of length 2
// print(t.2)
// ^
