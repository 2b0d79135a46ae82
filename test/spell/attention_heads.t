# attention of heads that are cut out of the last axis, and put back
# groups: 6
# spelling: transposes
(float[1,4,12] q, float[1,5,12] k, float[1,5,12] v) => (float[1,4,12] y) <float r = {0.40824829}, int64[4] s = {1, -1, 2, 6}, int64[3] o = {1, 4, 12}> {
  a = Reshape(q, s) b = Reshape(k, s) c = Reshape(v, s) a1 = Transpose <perm = [0, 2, 1, 3]> (a) b1 = Transpose <perm = [0, 2, 3, 1]> (b)
  c1 = Transpose <perm = [0, 2, 1, 3]> (c) m = MatMul(a1, b1) d = Mul(m, r) p = Softmax(d) n = MatMul(p, c1) t = Transpose <perm = [0, 2, 1, 3]> (n) y = Reshape(t, o) }
# spelling: key_in_two_steps
(float[1,4,12] q, float[1,5,12] k, float[1,5,12] v) => (float[1,4,12] y) <float r = {2.4494897}, int64[4] s = {1, -1, 2, 6}, int64[3] o = {1, 4, 12}> {
  q1 = Div(q, r) a = Reshape(q1, s) b = Reshape(k, s) c = Reshape(v, s) a1 = Transpose <perm = [0, 2, 1, 3]> (a) b0 = Transpose <perm = [0, 2, 1, 3]> (b)
  b1 = Transpose <perm = [0, 1, 3, 2]> (b0) c1 = Transpose <perm = [0, 2, 1, 3]> (c) m = MatMul(a1, b1) p = Softmax(m) n = MatMul(p, c1)
  t = Transpose <perm = [0, 2, 1, 3]> (n) y = Reshape(t, o) }
