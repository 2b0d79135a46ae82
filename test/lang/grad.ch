// grad(f) is a function; the gradient is with respect to the first argument.
fn f(x: any, k: any) { x * x * k }
let df = grad(f)
print(df(3.0, 2.0), df(tensor([1.0, 2.0]), 0.5), type(df))
fn plain(x: any) { 1.0 }
print(grad(plain)(2.0))

// expect
// 12.0 AutogradTensor([1.0, 2.0], shape=[2]) function

// error
// grad.ch:6:7: the function gives float that does not depend on its argument
// print(grad(plain)(2.0))
// ^
