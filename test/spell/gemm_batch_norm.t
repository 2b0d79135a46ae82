# batch normalization, or a scale and a bias, behind a product with constants are part of them
# groups: 1
# spelling: operator
(float[4,6] x, float[6,3] w_k, float[3] w_c, float[3] p_s, float[3] w_b, float[3] w_m, float[3] p_v) => (float[4,3] y) {
  c = Gemm(x, w_k, w_c) y = BatchNormalization(c, p_s, w_b, w_m, p_v) }
# spelling: matmul
(float[4,6] x, float[6,3] w_k, float[3] w_c, float[3] p_s, float[3] w_b, float[3] w_m, float[3] p_v) => (float[4,3] y) {
  p = MatMul(x, w_k) c = Add(w_c, p) y = BatchNormalization(c, p_s, w_b, w_m, p_v) }
# spelling: arithmetic
(float[4,6] x, float[6,3] w_k, float[3] w_c, float[3] p_s, float[3] w_b, float[3] w_m, float[3] p_v) => (float[4,3] y) <float eps = {0.00001}> {
  p = MatMul(x, w_k) c = Add(p, w_c) e = Add(p_v, eps) r = Sqrt(e) k = Div(p_s, r) n = Mul(w_m, k) o = Sub(w_b, n) t = Mul(c, k) y = Add(t, o) }
# spelling: scaled_before
(float[4,6] x, float[6,3] w_k, float[3] w_c, float[3] p_s, float[3] w_b, float[3] w_m, float[3] p_v) => (float[4,3] y) <float half = {0.5}, float two = {2}> {
  h = Mul(x, half) w = Mul(w_k, two) c = Gemm(h, w, w_c) y = BatchNormalization(c, p_s, w_b, w_m, p_v) }
