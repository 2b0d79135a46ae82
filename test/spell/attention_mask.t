# attention with a mask of bools
# groups: 6
# differ: Where with the operands the other way round needs a negated condition
# spelling: keep
(float[1,2,4,6] q, float[1,2,5,6] k, float[1,2,5,6] v, bool[1,1,4,5] m) => (float[1,2,4,6] y) <float r = {0.40824829}, float low = {-1e9}> {
  t = Transpose <perm = [0, 1, 3, 2]> (k) s = MatMul(q, t) d = Mul(s, r) a = Where(m, d, low) p = Softmax(a) y = MatMul(p, v) }
# spelling: hide
(float[1,2,4,6] q, float[1,2,5,6] k, float[1,2,5,6] v, bool[1,1,4,5] m) => (float[1,2,4,6] y) <float r = {0.40824829}, float low = {-1e9}> {
  n = Not(m) t = Transpose <perm = [0, 1, 3, 2]> (k) s = MatMul(q, t) d = Mul(s, r) a = Where(n, low, d) p = Softmax(a) y = MatMul(p, v) }
