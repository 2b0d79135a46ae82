# softmax without the maximum stays what it is: exponentials that overflow give NaN, as the standard says
# groups: 3
# spelling: quotient
(float[3,7] x) => (float[3,7] y) <int64[1] last = {1}> { e = Exp(x) s = ReduceSum(e, last) y = Div(e, s) }
# spelling: twice
(float[3,7] x) => (float[3,7] y) <int64[1] last = {1}> { e = Exp(x) f = Exp(x) s = ReduceSum(e, last) y = Div(f, s) }
