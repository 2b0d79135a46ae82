// Dimensions may be symbols, the same in one call.
fn product(a: tensor<float32, [m, k]>, b: tensor<float32, [k, n]>) -> tensor { a @ b }
print(product(tensor_ones([2, 3]), tensor_ones([3, 1])))
let n = 2
print(product(tensor_ones([2, 3]), tensor_ones([n, 3])))

// expect
// AutogradTensor([3.0, 3.0], shape=[2, 1])

// error
// symbols.ch:5:36: the shape is [2, 3], expected tensor<float64, [k, n]> where k is 3
// print(product(tensor_ones([2, 3]), tensor_ones([n, 3])))
// ^
