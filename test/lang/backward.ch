// Gradients of leaves; copies share them; a second call adds.
let x = tensor_requires_grad(tensor([1.0, 2.0, 3.0]), true)
let y = tensor_mul(x, x)
tensor_backward(y)
print(tensor_grad(x), type(tensor_grad(x)))
tensor_backward(y)
let copy = x
print(tensor_grad(copy))
let w = tensor_with_grad([2.0], [1])
let loss = nn_mse_loss(tensor_mul(w, tensor([3.0])), tensor([5.0]))
print(loss)
tensor_backward(loss)
print(tensor_grad(w), tensor_get_data(tensor_grad(w)))
w = tensor_zero_grad(w)
print(tensor_grad(w))
print(tensor_grad(tensor_set_grad(w, [0.25])))

// expect
// Tensor([3], [2.0, 4.0, 6.0]) tensor
// Tensor([3], [4.0, 8.0, 12.0])
// AutogradTensor([1.0], shape=[1])
// Tensor([1], [6.0]) [6.0]
// Tensor([1], [0.0])
// Tensor([1], [0.25])
