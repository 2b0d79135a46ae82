# what stands between DequantizeLinear and QuantizeLinear is one group with them
# groups: 1
# spelling: operators
(uint8[2,8] x) => (uint8[2,8] y) <float s = {0.125}, uint8 z = {3}> { a = DequantizeLinear(x, s, z) r = Relu(a) y = QuantizeLinear(r, s, z) }
# spelling: arithmetic
(uint8[2,8] x) => (uint8[2,8] y) <float s = {0.125}, float z = {3}, float lo = {0}, float hi = {255}> {
  c = Cast <to = 1> (x) d = Sub(c, z) a = Mul(d, s) r = Relu(a) q = Div(r, s) n = Round(q) t = Add(n, z) l = Clip(t, lo, hi) y = Cast <to = 2> (l) }
# differ: the operators subtract the zero point from integers
