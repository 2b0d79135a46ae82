# Coordinates in row-major order; how many there are depends on the data. NaN is not zero.
# input x = f32[2,3] {0, 1, -0.0, nan, 0, 2}
# output i = i64[2,3] {0, 1, 1, 1, 0, 2}
# output v = f32[3] {1, nan, 2}
# output n = i64[1] {3}
graph sym u data in 0..6 (%x "x": f32[2,3]) {
  %i: i64[2,u] = nonzero(%x) sym(u)
  %t: i64[u,2] = transpose(%i) {perm = [1,0]}
  %v: f32[u] = gather_nd(%x, %t) {batch = 0}
  %n: i64[1] = dims {shape = [u], to = i64, rank = 1}
  return %i "i", %v "v", %n "n"
}
