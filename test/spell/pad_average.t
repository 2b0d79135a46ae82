# padding with zeros, which count, in front of an average
# groups: 1
# spelling: pads
(float[1,2,5,5] x) => (float[1,2,3,3] y) { y = AveragePool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], count_include_pad = 1> (x) }
# spelling: pad
(float[1,2,5,5] x) => (float[1,2,3,3] y) <int64[8] p = {0, 0, 1, 1, 0, 0, 1, 1}> { a = Pad(x, p) y = AveragePool <kernel_shape = [3, 3], strides = [2, 2]> (a) }
