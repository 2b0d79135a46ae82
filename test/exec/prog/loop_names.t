# Loops that are called as parameters are in C, of which there are several.
# input p = f32[3] {1, 2, 3}
# input q = f32[3] {10, 20, 30}
# output y = f32[3] {11, 22, 33}
# output z = f32[3] {9, 18, 27}
prog loop_names
buf p: in f32[3]
buf q: in f32[3]
buf y: out f32[3]
buf z: out f32[3]
kernel "named" {
  for x in 0..3 {
    y[x] = p[x] + q[x]
  }
  for y in 0..3 {
    z[y] = q[y] - p[y]
  }
}
