// Extents beside a 0 are bounded as others are.
print(tensor_zeros([0, 3]) + 1.0)
print(tensor_zeros([0, 4611686018427387903]) + 1.0)

// expect
// AutogradTensor([], shape=[0, 3])

// error
// empty_too_large.ch:3:7: tensor_zeros(): a tensor of shape [0, 4611686018427387903] has too many elements
// print(tensor_zeros([0, 4611686018427387903]) + 1.0)
// ^
