// All errors of a file are told at once, with a caret and a hint.
let x = "a" + 1
let y = [1] + 2
let z = true * 2
let w = -"s"
print("1" < "2")

// error
// add_kinds.ch:2:13: Cannot add string and integer
// let x = "a" + 1
// ^
// hint: str(x) makes a string of any value
// add_kinds.ch:3:13: Cannot add array and integer
// let y = [1] + 2
// ^
// hint: a + [x] appends an element
// add_kinds.ch:4:14: Cannot multiply boolean and integer
// let z = true * 2
// ^
// add_kinds.ch:5:9: Cannot negate string
// let w = -"s"
// ^
// add_kinds.ch:6:11: Cannot compare string and string
// print("1" < "2")
// ^
