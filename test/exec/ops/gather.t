# Rows and columns; negative indices count from the end, others are clamped; a scalar index; i32 indices.
# input x = f32[3,2] {1, 2, 3, 4, 5, 6}
# input i = i64[2,2] {0, -1, 7, -9}
# input j = i32[] {1}
# input k = i32[3] {1, 0, 1}
# output a = f32[2,2,2] {1, 2, 5, 6, 5, 6, 1, 2}
# output b = f32[3] {2, 4, 6}
# output c = f32[3,3] {2, 1, 2, 4, 3, 4, 6, 5, 6}
graph (%x "x": f32[3,2], %i "i": i64[2,2], %j "j": i32[], %k "k": i32[3]) {
  %a: f32[2,2,2] = gather(%x, %i) {axis = 0}
  %b: f32[3] = gather(%x, %j) {axis = 1}
  %c: f32[3,3] = gather(%x, %k) {axis = 1}
  return %a "a", %b "b", %c "c"
}
