# chains of Squeeze, Unsqueeze, Reshape and Flatten are one reshape, or none
# groups: 1
# spelling: none
(float[2,3,4] x) => (float[2,3,4] y) { e = Exp(x) y = Neg(e) }
# spelling: chain
(float[2,3,4] x) => (float[2,3,4] y) <int64[1] zero = {0}, int64[2] two = {0, 3}, int64[3] s = {2, 3, 4}, int64[2] flat = {6, 4}> {
  a = Unsqueeze(x, zero) b = Reshape(a, flat) e = Exp(b) c = Unsqueeze(e, two) d = Squeeze(c, zero) n = Neg(d) y = Reshape(n, s) }
# spelling: flatten
(float[2,3,4] x) => (float[2,3,4] y) <int64[3] s = {2, 3, 4}> { a = Flatten(x) e = Exp(a) n = Neg(e) y = Reshape(n, s) }
# spelling: litter
(float[2,3,4] x) => (float[2,3,4] y) <int64[3] s = {0, 0, -1}> {
  i = Identity(x) c = Cast <to = 1> (i) e = Exp(c) d = Dropout(e) r = Reshape(d, s) n = Neg(r) y = Identity(n) }
# spelling: cast_there_and_back
(float[2,3,4] x) => (float[2,3,4] y) { c = Cast <to = 11> (x) d = Cast <to = 1> (c) e = Exp(d) y = Neg(e) }
