// Ways to make tensors, and how they show.
print(tensor([1.0, 2.0, 3.0]), tensor([1, 2, 3, 4], [2, 2]), tensor([[1, 2], [3, 4]]))
print(tensor_zeros([2]), tensor_ones([1, 2]), tensor_full([2], 0.5), tensor_eye(2))
print(tensor_zeros_like(tensor([1.0, 2.0])), tensor_zeros_like([1, 2]))
print(tensor_from_array([1.5, 2.5], [2, 1]), tensor_from_scalar(3.0), tensor_from_data([1.0, 2.0], [1, 2], false))
print(tensor([0.00001, 1e16, 0.0001, -2.5]))
tensor_print(tensor([1.0, 2.0], [1, 2]))

// expect
// AutogradTensor([1.0, 2.0, 3.0], shape=[3]) AutogradTensor([1.0, 2.0, 3.0, 4.0], shape=[2, 2]) AutogradTensor([1.0, 2.0, 3.0, 4.0], shape=[2, 2])
// AutogradTensor([0.0, 0.0], shape=[2]) AutogradTensor([1.0, 1.0], shape=[1, 2]) AutogradTensor([0.5, 0.5], shape=[2]) AutogradTensor([1.0, 0.0, 0.0, 1.0], shape=[2, 2])
// AutogradTensor([0.0, 0.0], shape=[2]) [0.0, 0.0]
// AutogradTensor([1.5, 2.5], shape=[2, 1]) Tensor([1], [3.0]) AutogradTensor([1.0, 2.0], shape=[1, 2])
// AutogradTensor([1e-5, 1e16, 0.0001, -2.5], shape=[4])
// Tensor(shape: [1, 2], data: [1.0, 2.0])
