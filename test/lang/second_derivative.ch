// Derivatives have derivatives; each is taken with respect to its own argument.
fn f(x: float) -> float { x * x * x }
print(grad(f)(2.0), grad(grad(f))(2.0), grad(grad(grad(f)))(2.0))
fn own(x: float) -> float { x * grad(fn(y: float) -> float { x + y })(1.0) }
fn same(x: float) -> float { grad(fn(y: float) -> float { x * y })(x) }
fn outer(x: float) -> float { autograd(fn(y: float) -> float { x * y * y }, 3.0) }
print(grad(own)(3.0), grad(same)(3.0), grad(outer)(5.0))
fn cubes(w: tensor) -> tensor { sum(w * w * w) }
fn steep(w: tensor) -> tensor {
    let g = grad(cubes)(w)
    sum(g * g)
}
print(grad(steep)(tensor([1.0, 2.0])))
fn net(w: tensor) -> tensor { sum(tanh(tensor([1.0, 0.5, -0.25, 0.5], [2, 2]) @ w)) }
fn first(w: tensor) -> float { sum(grad(net)(w) * tensor([1.0, 0.0], [2, 1])) }
let w = tensor([0.5, -0.25], [2, 1])
let up = first(tensor([0.500001, -0.25], [2, 1])) - first(tensor([0.499999, -0.25], [2, 1]))
print(abs(up / 0.000002 - tensor_get(grad(first)(w), [0, 0])) < 0.000001)
fn marked(w: tensor) -> tensor {
    tensor_backward(sum(w * w))
    sum(w)
}
print(grad(marked)(w))

// expect
// 12.0 12.0 6.0
// 1.0 1.0 6.0
// AutogradTensor([36.0, 288.0], shape=[2])
// true

// error
// second_derivative.ch:20:5: tensor_backward() in a function that is differentiated: grad(f) has derivatives there
// tensor_backward(sum(w * w))
// ^
