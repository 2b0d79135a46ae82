// Products, transposes, other shapes, joins.
let m = tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])
let n = tensor_transpose(m)
print(n, tensor_matmul(m, n), m @ n)
print(tensor_reshape(m, [3, 2]), reshape(m, [-1, 2]), flatten(m))
print(tensor_concat([m, m], 1), tensor_concat([m, m], 0))
print(m[1], m[0..1], m[1][2], tensor([5.0, 6.0])[-1])

// expect
// AutogradTensor([1.0, 4.0, 2.0, 5.0, 3.0, 6.0], shape=[3, 2]) AutogradTensor([14.0, 32.0, 32.0, 77.0], shape=[2, 2]) AutogradTensor([14.0, 32.0, 32.0, 77.0], shape=[2, 2])
// AutogradTensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], shape=[3, 2]) AutogradTensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], shape=[3, 2]) AutogradTensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], shape=[6])
// AutogradTensor([1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 4.0, 5.0, 6.0], shape=[2, 6]) AutogradTensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0], shape=[4, 3])
// AutogradTensor([4.0, 5.0, 6.0], shape=[3]) AutogradTensor([1.0, 2.0, 3.0], shape=[1, 3]) 6.0 6.0
