# instance norm
# groups: 4
# spelling: operator
(float[2,3,4,4] x, float[3] w_g, float[3] w_b) => (float[2,3,4,4] y) { y = InstanceNormalization(x, w_g, w_b) }
# spelling: arithmetic
(float[2,3,4,4] x, float[3] w_g, float[3] w_b) => (float[2,3,4,4] y) <int64[3] s = {3, 1, 1}, float two = {2}, float eps = {0.00001}> {
  m = ReduceMean <axes = [2, 3]> (x) d = Sub(x, m) p = Pow(d, two) v = ReduceMean <axes = [2, 3]> (p) e = Add(v, eps) r = Sqrt(e) n = Div(d, r)
  g = Reshape(w_g, s) b = Reshape(w_b, s) c = Mul(n, g) y = Add(c, b) }
