// The same where names are wrong; a mistake does not hide those behind it.
fn fact(n: int) -> int {
    if n <= 1 { return 1 }
    return n * fact(n - 1)
}
struct Point { x: float, y: float }
let q = Point(1, 2)
let a = [1]
a.append(2)
print(tensor([1.0]).shape, null)
let text = ""
for i in 1..10 {
    text = text + fact(i) + ","
}

// error
// habits_names.ch:7:9: Undefined variable: Point
// let q = Point(1, 2)
// ^
// hint: a struct is made by Name { field: value, .. }
// habits_names.ch:9:3: array has no field 'append'
// a.append(2)
// ^
// hint: push(x, ..) is a function
// habits_names.ch:10:21: autograd_tensor has no field 'shape'
// print(tensor([1.0]).shape, null)
// ^
// hint: tensor_shape(x, ..) is a function
// habits_names.ch:10:28: Undefined variable: null
// print(tensor([1.0]).shape, null)
// ^
// hint: the language has no null literal; a function without a value returns null
// habits_names.ch:13:17: Cannot add string and integer
// text = text + fact(i) + ","
// ^
// hint: str(x) makes a string of any value
