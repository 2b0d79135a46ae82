# Full coordinates, rows, and coordinates behind a batch axis.
# input x = f32[3,2] {1, 2, 3, 4, 5, 6}
# input i = i64[2,2] {0, 1, -1, 0}
# input j = i64[2,1] {2, 0}
# input k = i64[3,1] {1, 0, 5}
# output a = f32[2] {2, 5}
# output b = f32[2,2] {5, 6, 1, 2}
# output c = f32[3] {2, 3, 6}
graph (%x "x": f32[3,2], %i "i": i64[2,2], %j "j": i64[2,1], %k "k": i64[3,1]) {
  %a: f32[2] = gather_nd(%x, %i) {batch = 0}
  %b: f32[2,2] = gather_nd(%x, %j) {batch = 0}
  %c: f32[3] = gather_nd(%x, %k) {batch = 1}
  return %a "a", %b "b", %c "c"
}
