# x * tanh(softplus(x))
# groups: 1
# spelling: operator 18
(float[2,8] x) => (float[2,8] y) { y = Mish(x) }
# spelling: softplus
(float[2,8] x) => (float[2,8] y) { s = Softplus(x) t = Tanh(s) y = Mul(x, t) }
# spelling: arithmetic
(float[2,8] x) => (float[2,8] y) <float one = {1}> { e = Exp(x) a = Add(e, one) l = Log(a) t = Tanh(l) y = Mul(t, x) }
