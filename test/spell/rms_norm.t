# x over the root of the mean of its squares
# groups: 2
# spelling: torchscript
(float[2,3,6] x, float[6] w_g) => (float[2,3,6] y) <float two = {2}, float eps = {0.00001}> {
  p = Pow(x, two) v = ReduceMean <axes = [-1]> (p) a = Add(v, eps) s = Sqrt(a) q = Div(x, s) y = Mul(w_g, q)
}
# spelling: reciprocal
(float[2,3,6] x, float[6] w_g) => (float[2,3,6] y) <float eps = {0.00001}> {
  p = Mul(x, x) v = ReduceMean <axes = [-1]> (p) a = Add(eps, v) s = Sqrt(a) r = Reciprocal(s) q = Mul(x, r) y = Mul(q, w_g)
}
# spelling: one_over_root
(float[2,3,6] x, float[6] w_g) => (float[2,3,6] y) <float one = {1}, float two = {2}, float eps = {0.00001}> {
  p = Pow(x, two) v = ReduceMean <axes = [-1]> (p) a = Add(v, eps) s = Sqrt(a) r = Div(one, s) q = Mul(x, r) y = Mul(w_g, q)
}
# spelling: scale_first
(float[2,3,6] x, float[6] w_g) => (float[2,3,6] y) <float two = {2}, float root = {-0.5}, float eps = {0.00001}> {
  p = Pow(x, two) v = ReduceMean <axes = [-1]> (p) a = Add(v, eps) r = Pow(a, root) q = Mul(r, w_g) y = Mul(x, q)
}
