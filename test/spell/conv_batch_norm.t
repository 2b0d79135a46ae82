# batch normalization, or a scale and a bias, behind a convolution are part of its weights
# groups: 1
# spelling: operator
(float[1,2,5,5] x, float[3,2,3,3] w_k, float[3] p_s, float[3] w_b, float[3] w_m, float[3] p_v) => (float[1,3,3,3] y) {
  c = Conv(x, w_k) y = BatchNormalization(c, p_s, w_b, w_m, p_v) }
# spelling: with_bias
(float[1,2,5,5] x, float[3,2,3,3] w_k, float[3] p_s, float[3] w_b, float[3] w_m, float[3] p_v) => (float[1,3,3,3] y) <float[3] zero = {0, 0, 0}> {
  c = Conv(x, w_k, zero) y = BatchNormalization(c, p_s, w_b, w_m, p_v) }
# spelling: arithmetic
(float[1,2,5,5] x, float[3,2,3,3] w_k, float[3] p_s, float[3] w_b, float[3] w_m, float[3] p_v) => (float[1,3,3,3] y) <int64[3] s = {3, 1, 1}, float eps = {0.00001}> {
  c = Conv(x, w_k) m = Reshape(w_m, s) v = Reshape(p_v, s) k = Reshape(p_s, s) b = Reshape(w_b, s)
  d = Sub(c, m) e = Add(v, eps) r = Sqrt(e) q = Div(k, r) t = Mul(d, q) y = Add(t, b) }
# spelling: scale_and_bias
(float[1,2,5,5] x, float[3,2,3,3] w_k, float[3] p_s, float[3] w_b, float[3] w_m, float[3] p_v) => (float[1,3,3,3] y) <int64[4] s = {1, 3, 1, 1}, float eps = {0.00001}> {
  c = Conv(x, w_k) e = Add(p_v, eps) r = Sqrt(e) q0 = Div(p_s, r) n = Mul(w_m, q0) o0 = Sub(w_b, n) q = Reshape(q0, s) o = Reshape(o0, s)
  t = Mul(q, c) y = Add(o, t) }
