// Images are no labels: the file says how many dimensions it has.
print(tensor_shape(load_mnist_labels("test/lang/data/six-images-idx3-ubyte")))

// error
// mnist_missing.ch:2:20: test/lang/data/six-images-idx3-ubyte: expected an IDX file of bytes with 1 dimensions
// print(tensor_shape(load_mnist_labels("test/lang/data/six-images-idx3-ubyte")))
// ^
