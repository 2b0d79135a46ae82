// A bias has the shape [out].
print(nn_linear(tensor_ones([2, 3]), tensor_ones([3, 2]), tensor_ones([2])))
print(nn_linear(tensor_ones([2, 3]), tensor_ones([3, 2]), late(tensor_ones([2, 1]))))
// what is not known before the run is found then
fn late(t: any) { t }

// expect
// AutogradTensor([4.0, 4.0, 4.0, 4.0], shape=[2, 2])

// error
// linear_bias.ch:3:7: nn_linear(): shapes [2, 3], [3, 2] and [2, 1] do not fit: x [.., in], weights [in, out], bias [out]
// print(nn_linear(tensor_ones([2, 3]), tensor_ones([3, 2]), late(tensor_ones([2, 1]))))
// ^
