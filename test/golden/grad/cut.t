# integers end the path: nothing comes back through a class or a mask
# run: --grad y --stop=none
graph (%x "x": f32[3], %w "w": f32[3]) {
  %i: i64[] = argmax(%x) {axis = 0, keep = 0, last = 0}
  %p: bool[3] = lt(%x, %w)
  %f: f32[3] = cast(%p) {to = f32}
  %g: f32[] = gather(%w, %i) {axis = 0}
  %y: f32[3] = mul(%f, %g)
  return %y "y"
}

# expect
ingot 2
graph
(%1 "x": f32[3], %2 "w": f32[3]) {
  %3: i64[] = argmax(%1) {axis=0, keep=0, last=0}
  %4: bool[3] = lt(%1, %2)
  %5: f32[3] = cast(%4) {to=f32}
  %6: f32[] = gather(%2, %3) {axis=0}
  %7: f32[3] = mul(%5, %6)
  %8: f32[] = const {1}
  %9: f32[3] = broadcast(%8) {shape=[3]}
  %10: f32[3] = mul(%9, %5)
  %11: f32[1] = reduce_sum(%10) {axes=[0], keep=1}
  %12: f32[] = reshape(%11) {shape=[]}
  %13: f32[] = const {0}
  %14: f32[3] = broadcast(%13) {shape=[3]}
  %15: i64[1] = reshape(%3) {shape=[1]}
  %16: f32[3] = scatter_nd(%14, %15, %12) {reduce="add"}
  %17: f32[] = const {0}
  %18: f32[3] = broadcast(%17) {shape=[3]}
  return %7 "y", %18 "x.grad", %16 "w.grad"
}
