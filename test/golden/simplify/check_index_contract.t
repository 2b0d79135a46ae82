# A letter that only the second operand has is also summed: 2*3 products of at most 1 are up to 6.
# run: --start=simplify --stop=simplify
graph (%x: i64[4,2], %w: i64[2,3], %t: f32[3], %u: f32[7]) {
  %two: i64[] = const {2}
  %a: i64[4,2] = mod(%x, %two)
  %b: i64[2,3] = mod(%w, %two)
  %s: i64[4] = contract(%a, %b) {spec="ab,bc->a"}
  %i: i64[4] = check_index(%s) {size=[3]}
  %y: f32[4] = gather(%t, %i) {axis=0}
  %j: i64[4] = check_index(%s) {size=[7]}
  %z: f32[4] = gather(%u, %j) {axis=0}
  return %y, %z
}

# expect
ingot 2
graph
(%1: i64[4,2], %2: i64[2,3], %3: f32[3], %4: f32[7]) {
  %5: i64[] = const {2}
  %6: i64[4,2] = mod(%1, %5)
  %7: i64[2,3] = mod(%2, %5)
  %8: i64[4] = contract(%6, %7) {spec="ab,bc->a"}
  %9: i64[4] = check_index(%8) {size=[3]}
  %10: f32[4] = gather(%3, %9) {axis=0}
  %11: f32[4] = gather(%4, %8) {axis=0}
  return %10, %11
}
