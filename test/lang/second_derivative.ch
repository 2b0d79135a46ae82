// Derivatives have none.
fn f(x: float) -> float { x * x * x }
print(grad(f)(2.0))
print(grad(grad(f))(2.0))

// expect
// 12.0

// error
// second_derivative.ch:4:7: a gradient of a gradient: second derivatives are not supported
// print(grad(grad(f))(2.0))
// ^
