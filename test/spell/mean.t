# the mean over places of an image
# groups: 1
# spelling: pool
(float[2,3,5,4] x) => (float[2,3] y) <int64[2] s = {2, 3}> { p = GlobalAveragePool(x) y = Reshape(p, s) }
# spelling: reduce
(float[2,3,5,4] x) => (float[2,3] y) { y = ReduceMean <axes = [2, 3], keepdims = 0> (x) }
# spelling: flatten
(float[2,3,5,4] x) => (float[2,3] y) { p = ReduceMean <axes = [-1, -2]> (x) y = Flatten(p) }
# spelling: sum
(float[2,3,5,4] x) => (float[2,3] y) <int64[2] a = {2, 3}, float k = {0.05}> { s = ReduceSum <keepdims = 0> (x, a) y = Mul(s, k) }
# spelling: average_pool
(float[2,3,5,4] x) => (float[2,3] y) <int64[2] a = {2, 3}> { p = AveragePool <kernel_shape = [5, 4]> (x) y = Squeeze(p, a) }
# spelling: channels_last
(float[2,3,5,4] x) => (float[2,3] y) { t = Transpose <perm = [0, 2, 3, 1]> (x) y = ReduceMean <axes = [1, 2], keepdims = 0> (t) }
