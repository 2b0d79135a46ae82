# All ways to combine; an index outside is skipped; negative ones count from the end.
# input x = f32[2,3] {1, 2, 3, 4, 5, 6}
# input i = i64[2,2] {0, -1, 5, 0}
# input u = f32[2,2] {10, 20, 30, 0.5}
# output a = f32[2,3] {10, 2, 20, 0.5, 5, 6}
# output b = f32[2,3] {11, 2.5, 3, 4, 25, 6}
# output c = f32[2,3] {10, 2, 60, 2, 5, 6}
# output d = f32[2,3] {10, 2, 20, 4, 5, 6}
# output e = f32[2,3] {1, 0.5, 3, 4, 5, 6}
graph (%x "x": f32[2,3], %i "i": i64[2,2], %u "u": f32[2,2]) {
  %a: f32[2,3] = scatter_elems(%x, %i, %u) {axis = 1, reduce = "none"}
  %b: f32[2,3] = scatter_elems(%x, %i, %u) {axis = 0, reduce = "add"}
  %c: f32[2,3] = scatter_elems(%x, %i, %u) {axis = 1, reduce = "mul"}
  %d: f32[2,3] = scatter_elems(%x, %i, %u) {axis = 1, reduce = "max"}
  %e: f32[2,3] = scatter_elems(%x, %i, %u) {axis = 0, reduce = "min"}
  return %a "a", %b "b", %c "c", %d "d", %e "e"
}
