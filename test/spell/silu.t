# x * sigmoid(x)
# groups: 1
# spelling: sigmoid
(float[2,8] x) => (float[2,8] y) { s = Sigmoid(x) y = Mul(x, s) }
# spelling: sigmoid_first
(float[2,8] x) => (float[2,8] y) { s = Sigmoid(x) y = Mul(s, x) }
# spelling: quotient
(float[2,8] x) => (float[2,8] y) <float one = {1}> { n = Neg(x) e = Exp(n) d = Add(one, e) y = Div(x, d) }
# spelling: reciprocal
(float[2,8] x) => (float[2,8] y) <float one = {1}, float minus = {-1}> { n = Mul(x, minus) e = Exp(n) d = Add(e, one) r = Reciprocal(d) y = Mul(x, r) }
# spelling: one_over
(float[2,8] x) => (float[2,8] y) <float one = {1}> { n = Neg(x) e = Exp(n) d = Add(e, one) r = Div(one, d) y = Mul(x, r) }
