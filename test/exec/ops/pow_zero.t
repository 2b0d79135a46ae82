# A power is a root only where nothing is -0: max(-0, 0) is. The largest of nothing is below the padding.
# input x = f32[3] {-0, 0, 4}
# input e = f32[1,1,0,2] {}
# output a = f32[3] {inf, inf, 0.5}
# output b = f32[1,1,1,2] {0, 0}
graph (%x "x": f32[3], %e "e": f32[1,1,0,2]) {
  %h: f32[] = const {-0.5}
  %z: f32[] = const {0}
  %m: f32[3] = max(%x, %z)
  %a: f32[3] = pow(%m, %h)
  %s: f32[1,1,0,2] = exp(%e)
  %t: f32[1,1,1,2] = reduce_max(%s) {axes=[2], keep=1}
  %p: f32[1,1,3,4] = pad(%t, %z) {lo=[0,0,1,1], hi=[0,0,1,1], interior=[0,0,0,0]}
  %b: f32[1,1,1,2] = pool_max(%p) {window=[3,3], stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  return %a "a", %b "b"
}
