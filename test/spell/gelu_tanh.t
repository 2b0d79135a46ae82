# Gelu by tanh
# groups: 1
# spelling: operator 20
(float[2,8] x) => (float[2,8] y) { y = Gelu <approximate = "tanh"> (x) }
# spelling: new_gelu
(float[2,8] x) => (float[2,8] y) <float three = {3}, float k = {0.044715}, float r = {0.7978845608}, float one = {1}, float half = {0.5}> {
  h = Mul(x, half) p = Pow(x, three) q = Mul(p, k) s = Add(x, q) t = Mul(s, r) u = Tanh(t) v = Add(u, one) y = Mul(h, v)
}
# spelling: fast_gelu
(float[2,8] x) => (float[2,8] y) <float k = {0.044715}, float r = {0.7978845608}, float one = {1}, float half = {0.5}> {
  a = Mul(x, r) b = Mul(k, x) c = Mul(b, x) d = Add(one, c) t = Mul(a, d) u = Tanh(t) v = Add(one, u) w = Mul(half, x) y = Mul(w, v)
}
# spelling: products
(float[2,8] x) => (float[2,8] y) <float k = {0.044715}, float r = {0.7978845608}, float one = {1}, float half = {0.5}> {
  a = Mul(x, x) b = Mul(x, a) c = Mul(k, b) s = Add(c, x) t = Mul(r, s) u = Tanh(t) v = Add(u, one) w = Mul(v, half) y = Mul(w, x)
}
