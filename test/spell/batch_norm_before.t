# a scale and a bias in front of a convolution or product become part of its weights and of the bias behind
# groups: 2
# spelling: operators
(float[2,3,4,4] x, float[2,3,3,3] w_k, float[3] p_s, float[3] w_b, float[3] w_m, float[3] p_v, float[8,5] w_g) => (float[2,5] y) {
  b = BatchNormalization(x, p_s, w_b, w_m, p_v) c = Conv(b, w_k) f = Flatten(c) y = MatMul(f, w_g) }
# spelling: arithmetic
(float[2,3,4,4] x, float[2,3,3,3] w_k, float[3] p_s, float[3] w_b, float[3] w_m, float[3] p_v, float[8,5] w_g) => (float[2,5] y) <int64[3] s = {3, 1, 1}, float eps = {0.00001}> {
  m = Reshape(w_m, s) v = Reshape(p_v, s) k = Reshape(p_s, s) o = Reshape(w_b, s) e = Add(v, eps) r = Sqrt(e) q = Div(k, r) d = Sub(x, m) t = Mul(d, q) b = Add(t, o)
  c = Conv(b, w_k) f = Flatten(c) y = MatMul(f, w_g) }
