# A sum over all rows goes on from what the bands before it came to, in the order it would have without bands; a maximum is one of
# the maxima of the bands. Both end the stretch: what reads them stands behind it.
# run: --start=row_tiling --stop=row_tiling --ram 240
graph (%x "x": f32[1,1,8,4]) {
  %w: f32[4,1,3,3] = const {0,1,2,3,4,5,6,7,8,0,1,2,3,4,5,6,7,8,0,1,2,3,4,5,6,7,8,0,1,2,3,4,5,6,7,8}
  %n: f32[] = const {0.03125}
  %a: f32[1,4,8,4] = conv(%x, %w) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}
  %s: f32[1,4] = reduce_sum(%a) {axes=[2,3], keep=0}
  %t: f32[1,4] = reduce_max(%a) {axes=[2,3], keep=0}
  %m: f32[1,4] = mul(%s, %n)
  return %m "mean", %t "top"
}

# expect
ingot 2
graph
(%1 "x": f32[1,1,8,4]) {
  %2: f32[4,1,3,3] = const {0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8}
  %3: f32[] = const {0.03125}
  %4: f32[1,1,4,4] = slice(%1) {start=[0,0,0,0], step=[1,1,1,1], size=[1,1,4,4]}
  %5: f32[1,4,3,4] = conv(%4, %2) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[0,1]}
  %6: f32[1,4] = reduce_sum(%5) {axes=[2,3], keep=0}
  %7: f32[1,4] = reduce_max(%5) {axes=[2,3], keep=0}
  %8: f32[1,1,5,4] = slice(%1) {start=[0,0,2,0], step=[1,1,1,1], size=[1,1,5,4]}
  %9: f32[1,4,3,4] = conv(%8, %2) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,1], pad_hi=[0,1]}
  %10: f32[1,4] = resume_sum(%9, %6) {axes=[2,3], keep=0}
  %11: f32[1,4] = reduce_max(%9) {axes=[2,3], keep=0}
  %12: f32[1,4] = max(%7, %11)
  %13: f32[1,1,3,4] = slice(%1) {start=[0,0,5,0], step=[1,1,1,1], size=[1,1,3,4]}
  %14: f32[1,4,2,4] = conv(%13, %2) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,1], pad_hi=[1,1]}
  %15: f32[1,4] = resume_sum(%14, %10) {axes=[2,3], keep=0}
  %16: f32[1,4] = reduce_max(%14) {axes=[2,3], keep=0}
  %17: f32[1,4] = max(%12, %16)
  %18: f32[1,4] = mul(%15, %3)
  return %18 "mean", %17 "top"
}
