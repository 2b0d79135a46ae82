# softmax over the last axis
# groups: 4
# spelling: operator
(float[3,7] x) => (float[3,7] y) { y = Softmax(x) }
# spelling: arithmetic
(float[3,7] x) => (float[3,7] y) <int64[1] last = {1}> { m = ReduceMax <axes = [1]> (x) d = Sub(x, m) e = Exp(d) s = ReduceSum <keepdims = 1> (e, last) y = Div(e, s) }
# spelling: reciprocal
(float[3,7] x) => (float[3,7] y) <int64[1] last = {1}> { m = ReduceMax <axes = [-1]> (x) d = Sub(x, m) e = Exp(d) s = ReduceSum(e, last) r = Reciprocal(s) y = Mul(r, e) }
# spelling: without_axis
(float[3,7] x) => (float[3,7] y) <int64[1] last = {1}> { m0 = ReduceMax <axes = [1], keepdims = 0> (x) m = Unsqueeze(m0, last) d = Sub(x, m) e = Exp(d)
  s0 = ReduceSum <keepdims = 0> (e, last) s = Unsqueeze(s0, last) y = Div(e, s) }
# spelling: opset_12 12
(float[3,7] x) => (float[3,7] y) { y = Softmax <axis = 1> (x) }
