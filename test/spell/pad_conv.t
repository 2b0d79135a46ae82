# padding with zeros is the padding of the convolution behind it
# groups: 1
# spelling: pads
(float[1,2,4,4] x, float[3,2,3,3] w_k, float[3] w_b) => (float[1,3,5,5] y) { y = Conv <pads = [1, 1, 2, 2]> (x, w_k, w_b) }
# spelling: pad
(float[1,2,4,4] x, float[3,2,3,3] w_k, float[3] w_b) => (float[1,3,5,5] y) <int64[8] p = {0, 0, 1, 1, 0, 0, 2, 2}> { a = Pad(x, p) y = Conv(a, w_k, w_b) }
# spelling: both
(float[1,2,4,4] x, float[3,2,3,3] w_k, float[3] w_b) => (float[1,3,5,5] y) <int64[8] p = {0, 0, 0, 0, 0, 0, 1, 1}, float zero = {0}> {
  a = Pad(x, p, zero) y = Conv <pads = [1, 1, 1, 1]> (a, w_k, w_b) }
# spelling: channels_last
(float[1,2,4,4] x, float[3,2,3,3] w_k, float[3] w_b) => (float[1,3,5,5] y) <int64[8] p = {0, 1, 1, 0, 0, 2, 2, 0}> {
  t = Transpose <perm = [0, 2, 3, 1]> (x) a = Pad(t, p) u = Transpose <perm = [0, 3, 1, 2]> (a) y = Conv(u, w_k, w_b) }
