# a reduction reads a transposed operand as it lies
# groups: 1
# spelling: none
(float[2,3,4,5] x) => (float[2,3] y) { y = ReduceMax <axes = [2, 3], keepdims = 0> (x) }
# spelling: transposed
(float[2,3,4,5] x) => (float[2,3] y) { t = Transpose <perm = [0, 3, 1, 2]> (x) y = ReduceMax <axes = [1, 3], keepdims = 0> (t) }
# spelling: kept
(float[2,3,4,5] x) => (float[2,3] y) <int64[2] a = {1, 2}> {
  t = Transpose <perm = [0, 2, 3, 1]> (x) m = ReduceMax <axes = [1, 2]> (t) u = Transpose <perm = [0, 3, 1, 2]> (m) b = Constant <value = int64[2] {2, 3}> () y = Squeeze(u, b) }
