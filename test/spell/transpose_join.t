# transposes around a join
# groups: 1
# spelling: none
(float[1,3,4,5] x, float[1,2,4,5] z) => (float[1,5,4,5] y) { y = Concat <axis = 1> (x, z) }
# spelling: channels_last
(float[1,3,4,5] x, float[1,2,4,5] z) => (float[1,5,4,5] y) {
  t = Transpose <perm = [0, 2, 3, 1]> (x) u = Transpose <perm = [0, 2, 3, 1]> (z) c = Concat <axis = 3> (t, u) y = Transpose <perm = [0, 3, 1, 2]> (c) }
