# a dense layer with bias and Relu, and a squared loss: derivatives of all that goes in
# run: --grad loss:x,w,b --stop=none
graph (%x "x": f32[2,3], %w "w": f32[3,4], %b "b": f32[4], %t "t": f32[2,4]) {
  %p: f32[2,4] = contract(%x, %w) {spec = "mk,kn->mn"}
  %s: f32[2,4] = add(%p, %b)
  %z: f32[] = const {0}
  %r: f32[2,4] = max(%s, %z)
  %d: f32[2,4] = sub(%r, %t)
  %q: f32[2,4] = mul(%d, %d)
  %loss: f32[] = reduce_sum(%q) {axes = [0,1], keep = 0}
  return %loss "loss"
}

# expect
ingot 2
graph
(%1 "x": f32[2,3], %2 "w": f32[3,4], %3 "b": f32[4], %4 "t": f32[2,4]) {
  %5: f32[2,4] = contract(%1, %2) {spec="mk,kn->mn"}
  %6: f32[2,4] = add(%5, %3)
  %7: f32[] = const {0}
  %8: f32[2,4] = max(%6, %7)
  %9: f32[2,4] = sub(%8, %4)
  %10: f32[2,4] = mul(%9, %9)
  %11: f32[] = reduce_sum(%10) {axes=[0,1], keep=0}
  %12: f32[] = const {1}
  %13: f32[1,1] = reshape(%12) {shape=[1,1]}
  %14: f32[2,4] = broadcast(%13) {shape=[2,4]}
  %15: f32[2,4] = mul(%14, %9)
  %16: f32[2,4] = mul(%14, %9)
  %17: f32[2,4] = add(%15, %16)
  %18: f32[] = const {0}
  %19: bool[2,4] = gt(%6, %7)
  %20: f32[2,4] = select(%19, %17, %18)
  %21: f32[1,4] = reduce_sum(%20) {axes=[0], keep=1}
  %22: f32[4] = reshape(%21) {shape=[4]}
  %23: f32[2,3] = contract(%20, %2) {spec="mn,kn->mk"}
  %24: f32[3,4] = contract(%20, %1) {spec="mn,mk->kn"}
  return %11 "loss", %23 "x.grad", %24 "w.grad", %22 "b.grad"
}
