# zeros in front of a pool over numbers that may be negative stay: they can win
# groups: 2
# spelling: zeros
(float[1,2,5,5] x) => (float[1,2,3,3] y) <int64[8] p = {0, 0, 1, 1, 0, 0, 1, 1}> { a = Pad(x, p) y = MaxPool <kernel_shape = [3, 3], strides = [2, 2]> (a) }
