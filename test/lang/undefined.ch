// An unknown name, and what may have been meant.
let counter = 1
print(conter, nn_rellu(3))
counter2 = 5

// error
// undefined.ch:3:7: Undefined variable: conter
// print(conter, nn_rellu(3))
// ^
// hint: did you mean 'counter'?
// undefined.ch:3:15: Undefined variable: nn_rellu
// print(conter, nn_rellu(3))
// ^
// hint: did you mean 'nn_relu'?
// undefined.ch:4:1: Cannot assign to undefined variable: counter2
// counter2 = 5
// ^
// hint: let defines a variable
