// A variable hides no built-in, a function of the program does.
let sum = tensor([1.0, 2.0])
print(tensor_sum(sum), sum(sum))
fn relu(x: float32) -> float32 { 42.0 }
print(relu(1.0))

// expect
// 3.0 3.0
// 42.0
