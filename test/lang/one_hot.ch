// Classes as rows; bytes of a file as numbers.
print(one_hot(tensor([2.0, 0.0]), 3))
let bytes = load_data("models/digits_test.bin")
print(tensor_shape(bytes), tensor_shape(reshape(bytes[0..128], [2, 64])))
print(one_hot(tensor([3.0]), 3))

// expect
// AutogradTensor([0.0, 0.0, 1.0, 1.0, 0.0, 0.0], shape=[2, 3])
// [23400] [2, 64]

// error
// one_hot.ch:5:7: one_hot(): 3 is not from 0 to 2
// print(one_hot(tensor([3.0]), 3))
// ^
