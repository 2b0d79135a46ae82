// A kernel that is larger than the image.
layer_forward(conv2d(1, 1, 5), tensor_zeros([1, 1, 3, 3]))

// error
// layer_shape.ch:2:1: Conv2d(1 → 1, kernel=5, stride=1, padding=0) takes images as large as its kernel at least, got shape [1, 1, 3, 3]
// layer_forward(conv2d(1, 1, 5), tensor_zeros([1, 1, 3, 3]))
// ^
