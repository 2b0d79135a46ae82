# layer norm over the last axis
# groups: 4
# spelling: operator
(float[2,3,6] x, float[6] w_g, float[6] w_b) => (float[2,3,6] y) { y = LayerNormalization(x, w_g, w_b) }
# spelling: torchscript
(float[2,3,6] x, float[6] w_g, float[6] w_b) => (float[2,3,6] y) <float two = {2}, float eps = {0.00001}> {
  m = ReduceMean <axes = [-1]> (x) d = Sub(x, m) p = Pow(d, two) v = ReduceMean <axes = [-1]> (p) a = Add(v, eps) s = Sqrt(a)
  q = Div(d, s) t = Mul(q, w_g) y = Add(t, w_b)
}
# spelling: two_subtractions
(float[2,3,6] x, float[6] w_g, float[6] w_b) => (float[2,3,6] y) <float eps = {0.00001}> {
  m = ReduceMean <axes = [2]> (x) d = Sub(x, m) e = Sub(x, m) p = Mul(e, e) v = ReduceMean <axes = [2]> (p) a = Add(eps, v) s = Sqrt(a)
  r = Reciprocal(s) q = Mul(r, d) t = Mul(w_g, q) y = Add(w_b, t)
}
# spelling: keras
(float[2,3,6] x, float[6] w_g, float[6] w_b) => (float[2,3,6] y) <float eps = {0.00001}> {
  m = ReduceMean <axes = [2]> (x) d = Sub(x, m) p = Mul(d, d) v = ReduceMean <axes = [2]> (p) a = Add(v, eps) s = Sqrt(a)
  r = Reciprocal(s) k = Mul(r, w_g) t = Mul(x, k) n = Mul(m, k) o = Sub(w_b, n) y = Add(t, o)
}
# spelling: powers
(float[2,3,6] x, float[6] w_g, float[6] w_b) => (float[2,3,6] y) <float two = {2}, float root = {-0.5}, float eps = {0.00001}> {
  m = ReduceMean <axes = [-1]> (x) d = Sub(x, m) p = Pow(d, two) v = ReduceMean <axes = [-1]> (p) a = Add(v, eps) r = Pow(a, root)
  q = Mul(d, r) t = Mul(q, w_g) y = Add(t, w_b)
}
# spelling: sums
(float[2,3,6] x, float[6] w_g, float[6] w_b) => (float[2,3,6] y) <float n = {6}, float sixth = {0.16666667}, float eps = {0.00001}, int64[1] last = {-1}> {
  s1 = ReduceSum <keepdims = 0> (x, last) m1 = Mul(s1, sixth) m = Unsqueeze(m1, last) d = Sub(x, m) p = Mul(d, d) s2 = ReduceSum(p, last)
  v = Div(s2, n) a = Add(v, eps) s = Sqrt(a) q = Div(d, s) t = Mul(q, w_g) y = Add(t, w_b)
}
