// Inner extents differ.
tensor_matmul(tensor_ones([2, 3]), tensor_ones([2, 3]))

// error
// matmul_wrong.ch:2:1: tensor_matmul: shapes of tensor<float64, [2, 3]> and tensor<float64, [2, 3]> do not fit
// tensor_matmul(tensor_ones([2, 3]), tensor_ones([2, 3]))
// ^
