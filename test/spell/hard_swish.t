# x * clip(x + 3, 0, 6) / 6
# groups: 1
# spelling: operator
(float[2,8] x) => (float[2,8] y) { y = HardSwish(x) }
# spelling: hard_sigmoid
(float[2,8] x) => (float[2,8] y) { h = HardSigmoid <alpha = 0.16666667, beta = 0.5> (x) y = Mul(x, h) }
# spelling: division_last
(float[2,8] x) => (float[2,8] y) <float three = {3}, float lo = {0}, float six = {6}> { a = Add(x, three) c = Clip(a, lo, six) m = Mul(x, c) y = Div(m, six) }
# spelling: division_first
(float[2,8] x) => (float[2,8] y) <float three = {3}, float lo = {0}, float six = {6}> { a = Add(three, x) c = Clip(a, lo, six) d = Div(c, six) y = Mul(d, x) }
# spelling: relu_min_product
(float[2,8] x) => (float[2,8] y) <float three = {3}, float sixth = {0.16666667}, float six = {6}> { a = Add(x, three) r = Relu(a) c = Min(r, six) d = Mul(c, sixth) y = Mul(x, d) }
