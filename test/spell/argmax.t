# the index of the largest
# groups: 1
# spelling: operator
(float[3,7] x) => (int64[3] y) { y = ArgMax <axis = 1, keepdims = 0> (x) }
# spelling: kept
(float[3,7] x) => (int64[3] y) <int64[1] a = {-1}> { k = ArgMax <axis = -1> (x) y = Squeeze(k, a) }
