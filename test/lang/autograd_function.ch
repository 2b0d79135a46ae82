// The gradient of a function, at numbers and tensors; of a loss with respect to a list.
fn quadratic(x: any) { x * x + 2.0 * x + 1.0 }
fn squares(w: tensor<float32, [3]>) { sum(w * w) }
print(autograd(quadratic, 3.0))
print(autograd(squares, tensor([1.0, 2.0, 3.0])))
let w = autograd(2.0)
let b = autograd([1.0])
print(autograd(nn_mse_loss(w * tensor([3.0]) + b, tensor([5.0])), [w, b]))

// expect
// 8.0
// AutogradTensor([2.0, 4.0, 6.0], shape=[3])
// [AutogradTensor([12.0], shape=[1]), AutogradTensor([4.0], shape=[1])]
