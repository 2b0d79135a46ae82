# log of softmax
# groups: 4
# spelling: operator
(float[3,7] x) => (float[3,7] y) { y = LogSoftmax(x) }
# spelling: shifted
(float[3,7] x) => (float[3,7] y) <int64[1] last = {1}> { m = ReduceMax <axes = [1]> (x) d = Sub(x, m) e = Exp(d) s = ReduceSum(e, last) l = Log(s) y = Sub(d, l) }
# spelling: log_sum
(float[3,7] x) => (float[3,7] y) <int64[1] last = {1}> { m = ReduceMax <axes = [1]> (x) d = Sub(x, m) e = Exp(d) s = ReduceSum(e, last) l = Log(s) a = Add(l, m) y = Sub(x, a) }
