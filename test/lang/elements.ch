// Elements of tensors; set gives a copy.
let m = tensor([1.0, 2.0, 3.0, 4.0], [2, 2])
let k = tensor_set(m, [1, 0], 9.0)
print(tensor_get(m, [1, 0]), tensor_get(k, [1, 0]), tensor_get_data(k), tensor_item(tensor([7.0])))
let g = tensor_from_scalar(2.5)
print(len(g), g[0], g, type(g), type(m))
print(tensor_get(m, [2, 0]))

// expect
// 3.0 9.0 [1.0, 2.0, 9.0, 4.0] 7.0
// 1 2.5 Tensor([1], [2.5]) tensor autograd_tensor

// error
// elements.ch:7:7: tensor_get(): index 2 is out of bounds for shape [2, 2]
// print(tensor_get(m, [2, 0]))
// ^
