// Inner extents differ.
tensor_matmul(tensor_ones([2, 3]), tensor_ones([2, 3]))

// error
// matmul_wrong.ch:2:1: tensor_matmul(): shape mismatch [2, 3] vs [2, 3]
// tensor_matmul(tensor_ones([2, 3]), tensor_ones([2, 3]))
// ^
