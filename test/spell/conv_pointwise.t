# a convolution with a 1x1 kernel is a product over channels
# groups: 1
# spelling: conv
(float[1,3,4,5] x, float[3,2] w_k, float[2] w_b) => (float[1,2,4,5] y) <int64[4] s = {2, 3, 1, 1}> {
  t = Transpose <perm = [1, 0]> (w_k) k = Reshape(t, s) c = Conv(x, k, w_b) y = Relu(c) }
# spelling: channels_last
(float[1,3,4,5] x, float[3,2] w_k, float[2] w_b) => (float[1,2,4,5] y) {
  t = Transpose <perm = [0, 2, 3, 1]> (x) p = MatMul(t, w_k) b = Add(p, w_b) r = Relu(b) y = Transpose <perm = [0, 3, 1, 2]> (r) }
# spelling: bias_behind
(float[1,3,4,5] x, float[3,2] w_k, float[2] w_b) => (float[1,2,4,5] y) <int64[3] s = {2, 1, 1}> {
  t = Transpose <perm = [0, 2, 3, 1]> (x) p = MatMul(t, w_k) q = Transpose <perm = [0, 3, 1, 2]> (p) v = Reshape(w_b, s) b = Add(q, v) y = Relu(b) }
