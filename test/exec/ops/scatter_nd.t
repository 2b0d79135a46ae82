# Rows that meet twice are applied in order; full coordinates; outside is skipped.
# input x = f32[2,3] {1, 2, 3, 4, 5, 6}
# input i = i64[3,1] {1, 1, 2}
# input u = f32[3,3] {1, 2, 3, 1, 1, 1, 9, 9, 9}
# input j = i64[2,2] {0, 1, -1, -1}
# input v = f32[2] {7, 0.5}
# output a = f32[2,3] {1, 2, 3, 1, 1, 1}
# output b = f32[2,3] {1, 2, 3, 6, 8, 10}
# output c = f32[2,3] {1, 14, 3, 4, 5, 3}
# output d = f32[2,3] {1, 7, 3, 4, 5, 6}
# output e = f32[2,3] {1, 2, 3, 4, 5, 0.5}
graph (%x "x": f32[2,3], %i "i": i64[3,1], %u "u": f32[3,3], %j "j": i64[2,2], %v "v": f32[2]) {
  %a: f32[2,3] = scatter_nd(%x, %i, %u) {reduce = "none"}
  %b: f32[2,3] = scatter_nd(%x, %i, %u) {reduce = "add"}
  %c: f32[2,3] = scatter_nd(%x, %j, %v) {reduce = "mul"}
  %d: f32[2,3] = scatter_nd(%x, %j, %v) {reduce = "max"}
  %e: f32[2,3] = scatter_nd(%x, %j, %v) {reduce = "min"}
  return %a "a", %b "b", %c "c", %d "d", %e "e"
}
