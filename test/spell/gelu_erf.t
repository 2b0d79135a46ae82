# Gelu by the error function
# groups: 1
# spelling: operator 20
(float[2,8] x) => (float[2,8] y) { y = Gelu(x) }
# spelling: torchscript
(float[2,8] x) => (float[2,8] y) <float root = {1.41421356}, float one = {1}, float half = {0.5}> {
  a = Div(x, root) b = Erf(a) c = Add(b, one) d = Mul(x, c) y = Mul(d, half)
}
# spelling: half_first
(float[2,8] x) => (float[2,8] y) <float root = {1.41421356}, float one = {1}, float half = {0.5}> {
  h = Mul(half, x) a = Div(x, root) b = Erf(a) c = Add(one, b) y = Mul(h, c)
}
# spelling: half_inside
(float[2,8] x) => (float[2,8] y) <float r = {0.70710678}, float one = {1}, float half = {0.5}> {
  a = Mul(x, r) b = Erf(a) c = Add(b, one) d = Mul(half, c) y = Mul(x, d)
}
# spelling: tf2onnx
(float[2,8] x) => (float[2,8] y) <float r = {0.70710678}, float half = {0.5}> {
  a = Mul(r, x) b = Erf(a) c = Mul(b, half) d = Add(c, half) y = Mul(d, x)
}
# spelling: one_element_tensors
(float[2,8] x) => (float[2,8] y) <float[1] root = {1.41421356}, float[1,1] one = {1}, float[1] half = {0.5}> {
  a = Div(x, root) b = Erf(a) c = Add(b, one) d = Mul(x, c) y = Mul(d, half)
}
