// A network from a file is called like a function.
import "../../models/digits.onnx" as net
let p = net(tensor_zeros([1, 1, 8, 8]))
print(tensor_shape(p), argmax(p), abs(tensor_sum(p) - 1.0) < 0.00001, type(net))
let x = load_data("test/docs/tour.npy")
print(tensor_shape(x))
// called again, with other contents and other shapes
let first = net(tensor_ones([1, 1, 8, 8]))
let two = net(tensor_concat([tensor_zeros([1, 1, 8, 8]), tensor_ones([1, 1, 8, 8])], 0))
print(net(tensor_zeros([1, 1, 8, 8])) == p, first == p, net(tensor_ones([1, 1, 8, 8])) == first, tensor_shape(two))

// expect
// [1, 10] 1 true network
// [2, 1, 3, 3]
// true false true [2, 10]
