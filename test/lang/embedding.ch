// Rows of a table; indices in bounds.
let table = tensor([0.0, 0.1, 1.0, 1.1, 2.0, 2.1], [3, 2])
print(nn_embedding(tensor([2.0, 0.0]), table))
print(nn_embedding(tensor([3.0]), table))

// expect
// AutogradTensor([2.0, 2.1, 0.0, 0.1], shape=[2, 2])

// error
// embedding.ch:4:7: nn_embedding(): index 3 is out of bounds for 3 rows
// print(nn_embedding(tensor([3.0]), table))
// ^
