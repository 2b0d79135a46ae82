// x [in] or [batch, in], weights [in, out], bias [out].
let w = tensor([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [3, 2])
let b = tensor([0.1, 0.2])
print(nn_linear(tensor([1.0, 2.0, 3.0]), w, b), nn_linear(tensor_ones([2, 3]), w, b))
let n = 2
print(nn_linear(tensor_ones([2, n]), w, b))

// expect
// AutogradTensor([2.3000000000000003, 3.0], shape=[2]) AutogradTensor([1.0, 1.4000000000000001, 1.0, 1.4000000000000001], shape=[2, 2])

// error
// linear_layer.ch:6:7: nn_linear(): shapes [2, 2], [3, 2] and [2] do not fit: x [.., in], weights [in, out], bias [out]
// print(nn_linear(tensor_ones([2, n]), w, b))
// ^
