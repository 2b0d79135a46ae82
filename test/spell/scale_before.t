# a scale and a bias of the inputs of a product
# groups: 1
# spelling: product
(float[2,3,6] x, float[6,4] w_k, float[6] p_s, float[6] w_b) => (float[2,3,4] y) { a = Mul(x, p_s) b = Add(a, w_b) y = MatMul(b, w_k) }
# spelling: gemm
(float[2,3,6] x, float[6,4] w_k, float[6] p_s, float[6] w_b) => (float[2,3,4] y) <int64[2] flat = {6, 6}, int64[3] deep = {2, 3, 4}> {
  a = Mul(p_s, x) b = Add(w_b, a) f = Reshape(b, flat) p = Gemm(f, w_k) y = Reshape(p, deep) }
# spelling: folded_by_hand
(float[2,3,6] x, float[6,4] w_k, float[6] p_s, float[6] w_b) => (float[2,3,4] y) <int64[1] one = {1}, int64[1] zero = {0}> {
  s = Unsqueeze(p_s, one) k = Mul(w_k, s) c = MatMul(w_b, w_k) p = MatMul(x, k) y = Add(p, c) }
