# group norm, as an operator and as the instance norm of groups
# groups: 5
# differ: the operator keeps the axes of the image apart, Reshape joins them; a reshape keeps scale and bias out of the norm
# spelling: reshapes
(float[2,6,4,4] x, float[6,1,1] w_g, float[6,1,1] w_b) => (float[2,6,4,4] y) <int64[3] s = {0, 3, -1}, int64[4] o = {2, 6, 4, 4}, float[3] one = {1, 1, 1}, float[3] zero = {0, 0, 0}> {
  a = Reshape(x, s) n = InstanceNormalization(a, one, zero) b = Reshape(n, o) c = Mul(b, w_g) y = Add(c, w_b) }
# spelling: arithmetic
(float[2,6,4,4] x, float[6,1,1] w_g, float[6,1,1] w_b) => (float[2,6,4,4] y) <int64[3] s = {0, 3, -1}, int64[4] o = {2, 6, 4, 4}, float two = {2}, float eps = {0.00001}> {
  a = Reshape(x, s) m = ReduceMean <axes = [2]> (a) d = Sub(a, m) p = Pow(d, two) v = ReduceMean <axes = [2]> (p) e = Add(v, eps) r = Sqrt(e) n = Div(d, r)
  b = Reshape(n, o) c = Mul(b, w_g) y = Add(c, w_b) }
# spelling: operator 21
(float[2,6,4,4] x, float[6] w_g0, float[6] w_b0, float[6,1,1] w_g, float[6,1,1] w_b) => (float[2,6,4,4] y) <int64[1] s = {6}> {
  g = Reshape(w_g, s) b = Reshape(w_b, s) y = GroupNormalization <num_groups = 3> (x, g, b) }
