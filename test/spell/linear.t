# a product with a constant matrix and a bias
# groups: 1
# spelling: matmul_add
(float[2,3,6] x, float[6,4] w_k, float[4] w_b) => (float[2,3,4] y) { p = MatMul(x, w_k) y = Add(p, w_b) }
# spelling: gemm
(float[2,3,6] x, float[6,4] w_k, float[4] w_b) => (float[2,3,4] y) <int64[2] flat = {-1, 6}, int64[3] deep = {2, 3, 4}> {
  f = Reshape(x, flat) p = Gemm(f, w_k, w_b) y = Reshape(p, deep) }
# spelling: transposed_weights
(float[2,3,6] x, float[6,4] w_k, float[4] w_b) => (float[2,3,4] y) <int64[2] flat = {6, 6}, int64[3] deep = {2, 3, 4}> {
  t = Transpose <perm = [1, 0]> (w_k) f = Reshape(x, flat) p = Gemm <transB = 1> (f, t, w_b) y = Reshape(p, deep) }
# spelling: bias_first
(float[2,3,6] x, float[6,4] w_k, float[4] w_b) => (float[2,3,4] y) <int64[2] flat = {6, 6}, int64[3] deep = {2, 3, 4}> {
  f = Reshape(x, flat) p = MatMul(f, w_k) r = Reshape(p, deep) y = Add(w_b, r) }
# spelling: einsum
(float[2,3,6] x, float[6,4] w_k, float[4] w_b) => (float[2,3,4] y) { p = Einsum <equation = "abc,cd->abd"> (x, w_k) y = Add(p, w_b) }
# spelling: product_transposed
(float[2,3,6] x, float[6,4] w_k, float[4] w_b) => (float[2,3,4] y) {
  t = Transpose <perm = [0, 2, 1]> (x) k = Transpose <perm = [1, 0]> (w_k) p = MatMul(k, t) q = Transpose <perm = [0, 2, 1]> (p) y = Add(q, w_b) }
# differ: the last multiplies the matrix with x, the others x with the matrix
