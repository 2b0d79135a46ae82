// Shapes that cannot fit are found before the run.
fn product(a: tensor<float32, [m, k]>, b: tensor<float32, [k, n]>) -> tensor { a @ b }
let a = tensor_zeros([2, 3])
let t: tensor<float32, [3, 2]> = a
print(a + tensor_ones([2]))
print(product(a, tensor_ones([2, 3])))
print(nn_linear(tensor_ones([4, 5]), tensor_ones([3, 2]), tensor_zeros([2])))
print(tensor_transpose(a) @ tensor_ones([3, 1]))
let rows: tensor<float32, [2, 3]> = [[1, 2], [3, 4]]

// error
// shapes_static.ch:4:34: the variable is tensor<float64, [3, 2]>, found tensor<float64, [2, 3]>
// let t: tensor<float32, [3, 2]> = a
// ^
// shapes_static.ch:5:9: +: shapes of tensor<float64, [2, 3]> and tensor<float64, [2]> do not fit
// print(a + tensor_ones([2]))
// ^
// shapes_static.ch:6:18: k is 3 in this call, found tensor<float64, [2, 3]>
// print(product(a, tensor_ones([2, 3])))
// ^
// shapes_static.ch:7:7: nn_linear(): shapes [4, 5], [3, 2] and [2] do not fit: x [.., in], weights [in, out], bias [out]
// print(nn_linear(tensor_ones([4, 5]), tensor_ones([3, 2]), tensor_zeros([2])))
// ^
// shapes_static.ch:8:27: @: shapes of tensor<float64, [3, 2]> and tensor<float64, [3, 1]> do not fit
// print(tensor_transpose(a) @ tensor_ones([3, 1]))
// ^
// shapes_static.ch:9:37: the variable is tensor<float64, [2, 3]>, found tensor<float64, [2, 2]>
// let rows: tensor<float32, [2, 3]> = [[1, 2], [3, 4]]
// ^
