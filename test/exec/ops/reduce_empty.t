# What reductions of nothing give; NaN wins in extremes.
# input x = f32[2,0] {}
# input y = f32[3] {1, nan, 2}
# output a = f32[2] {0, 0}
# output b = f32[2] {1, 1}
# output c = f32[2] {-inf, -inf}
# output d = f32[2] {inf, inf}
# output e = f32[] {nan}
# output f = f32[] {nan}
graph (%x "x": f32[2,0], %y "y": f32[3]) {
  %a: f32[2] = reduce_sum(%x) {axes = [1], keep = 0}
  %b: f32[2] = reduce_prod(%x) {axes = [1], keep = 0}
  %c: f32[2] = reduce_max(%x) {axes = [1], keep = 0}
  %d: f32[2] = reduce_min(%x) {axes = [1], keep = 0}
  %e: f32[] = reduce_max(%y) {axes = [0], keep = 0}
  %f: f32[] = reduce_min(%y) {axes = [0], keep = 0}
  return %a "a", %b "b", %c "c", %d "d", %e "e", %f "f"
}
