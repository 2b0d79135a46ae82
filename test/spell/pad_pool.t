# padding is the padding of the pool behind it: zeros where nothing is negative, or -Inf
# groups: 2
# spelling: pads
(float[1,2,5,5] x) => (float[1,2,3,3] y) { r = Relu(x) y = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (r) }
# spelling: zeros
(float[1,2,5,5] x) => (float[1,2,3,3] y) <int64[8] p = {0, 0, 1, 1, 0, 0, 1, 1}> { r = Relu(x) a = Pad(r, p) y = MaxPool <kernel_shape = [3, 3], strides = [2, 2]> (a) }
# spelling: infinity
(float[1,2,5,5] x) => (float[1,2,3,3] y) <int64[8] p = {0, 0, 1, 1, 0, 0, 1, 1}, float zero = {0}, float one = {-1}> {
  i = Div(one, zero) r = Relu(x) a = Pad(r, p, i) y = MaxPool <kernel_shape = [3, 3], strides = [2, 2]> (a) }
