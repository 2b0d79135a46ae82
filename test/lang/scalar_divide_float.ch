let x = 2000.0
let s = 0.0
while true {
    x = x - 0.5
    s = s + 1 / x
}

// error
// scalar_divide_float.ch:5:15: Division by zero
// s = s + 1 / x
// ^
