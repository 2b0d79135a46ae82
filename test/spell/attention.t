# scaled dot product attention with a mask that is added
# groups: 6
# spelling: scale_behind
(float[1,2,4,6] q, float[1,2,5,6] k, float[1,2,5,6] v, float[1,1,4,5] m) => (float[1,2,4,6] y) <float r = {2.4494897}> {
  t = Transpose <perm = [0, 1, 3, 2]> (k) s = MatMul(q, t) d = Div(s, r) a = Add(d, m) p = Softmax(a) y = MatMul(p, v) }
# spelling: scale_query
(float[1,2,4,6] q, float[1,2,5,6] k, float[1,2,5,6] v, float[1,1,4,5] m) => (float[1,2,4,6] y) <float r = {2.4494897}> {
  d = Div(q, r) t = Transpose <perm = [0, 1, 3, 2]> (k) s = MatMul(d, t) a = Add(m, s) p = Softmax(a) y = MatMul(p, v) }
# spelling: scale_both
(float[1,2,4,6] q, float[1,2,5,6] k, float[1,2,5,6] v, float[1,1,4,5] m) => (float[1,2,4,6] y) <float r = {0.6389431}> {
  d = Mul(q, r) t = Transpose <perm = [0, 1, 3, 2]> (k) e = Mul(r, t) s = MatMul(d, e) a = Add(s, m) p = Softmax(a) y = MatMul(p, v) }
# spelling: softmax_spelled
(float[1,2,4,6] q, float[1,2,5,6] k, float[1,2,5,6] v, float[1,1,4,5] m) => (float[1,2,4,6] y) <float r = {0.40824829}, int64[1] last = {3}> {
  t = Transpose <perm = [0, 1, 3, 2]> (k) s = MatMul(q, t) d = Mul(s, r) a = Add(d, m) x = ReduceMax <axes = [3]> (a) b = Sub(a, x) e = Exp(b)
  z = ReduceSum(e, last) p = Div(e, z) y = MatMul(p, v) }
# spelling: einsum
(float[1,2,4,6] q, float[1,2,5,6] k, float[1,2,5,6] v, float[1,1,4,5] m) => (float[1,2,4,6] y) <float r = {0.40824829}> {
  s = Einsum <equation = "bhqd,bhkd->bhqk"> (q, k) d = Mul(s, r) a = Add(d, m) p = Softmax(a) y = Einsum <equation = "bhqk,bhkd->bhqd"> (p, v) }
# spelling: batched_matrices
(float[1,2,4,6] q, float[1,2,5,6] k, float[1,2,5,6] v, float[1,1,4,5] m) => (float[1,2,4,6] y)
  <float r = {0.40824829}, int64[3] s3 = {2, -1, 6}, int64[4] s4 = {1, 2, 4, 5}, int64[3] p3 = {2, 4, 5}, int64[4] y4 = {1, 2, 4, 6}> {
  a = Reshape(q, s3) b = Reshape(k, s3) c = Reshape(v, s3) t = Transpose <perm = [0, 2, 1]> (b) s = MatMul(a, t) f = Reshape(s, s4) d = Mul(f, r)
  e = Add(d, m) p = Softmax(e) g = Reshape(p, p3) h = MatMul(g, c) y = Reshape(h, y4) }
