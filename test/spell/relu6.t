# a clip to 0..6
# groups: 1
# spelling: clip
(float[2,8] x) => (float[2,8] y) <float lo = {0}, float hi = {6}> { y = Clip(x, lo, hi) }
# spelling: max_min
(float[2,8] x) => (float[2,8] y) <float lo = {0}, float hi = {6}> { a = Max(x, lo) y = Min(a, hi) }
# spelling: min_max
(float[2,8] x) => (float[2,8] y) <float lo = {0}, float hi = {6}> { a = Min(hi, x) y = Max(lo, a) }
# spelling: relu_min
(float[2,8] x) => (float[2,8] y) <float[1] hi = {6}> { a = Relu(x) y = Min(a, hi) }
# spelling: relu_clip
(float[2,8] x) => (float[2,8] y) <float lo = {0}, float hi = {6}> { a = Relu(x) y = Clip(a, lo, hi) }
# spelling: old_clip 10
(float[2,8] x) => (float[2,8] y) { y = Clip <min = 0.0, max = 6.0> (x) }
