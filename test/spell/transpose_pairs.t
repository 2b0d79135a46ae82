# transposes that undo each other vanish, with elementwise nodes, joins and pads between them
# groups: 1
# spelling: none
(float[2,3,4,5] x, float[2,3,4,5] z, float[3,1,1] w_b) => (float[2,3,4,5] y) { a = Add(x, w_b) r = Relu(a) y = Mul(r, z) }
# spelling: around
(float[2,3,4,5] x, float[2,3,4,5] z, float[3,1,1] w_b) => (float[2,3,4,5] y) <int64[1] s = {3}> {
  t = Transpose <perm = [0, 2, 3, 1]> (x) u = Transpose <perm = [0, 2, 3, 1]> (z) b = Reshape(w_b, s) a = Add(t, b) r = Relu(a) m = Mul(r, u)
  y = Transpose <perm = [0, 3, 1, 2]> (m) }
# spelling: in_steps
(float[2,3,4,5] x, float[2,3,4,5] z, float[3,1,1] w_b) => (float[2,3,4,5] y) <int64[1] s = {3}> {
  t1 = Transpose <perm = [0, 2, 1, 3]> (x) t = Transpose <perm = [0, 1, 3, 2]> (t1) b = Reshape(w_b, s) a = Add(t, b) r = Relu(a)
  u = Transpose <perm = [0, 3, 1, 2]> (r) y = Mul(u, z) }
