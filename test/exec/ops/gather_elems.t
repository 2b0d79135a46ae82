# Each element names its own place along the axis; indices may be fewer than data.
# input x = f32[3,2] {1, 2, 3, 4, 5, 6}
# input i = i64[2,2] {2, -3, 9, 1}
# input j = i64[3,1] {1, 0, -1}
# output a = f32[2,2] {5, 2, 5, 4}
# output b = f32[3,1] {2, 3, 6}
graph (%x "x": f32[3,2], %i "i": i64[2,2], %j "j": i64[3,1]) {
  %a: f32[2,2] = gather_elems(%x, %i) {axis = 0}
  %b: f32[3,1] = gather_elems(%x, %j) {axis = 1}
  return %a "a", %b "b"
}
