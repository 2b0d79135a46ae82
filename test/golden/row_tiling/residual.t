# What is added to the result of a convolution waits for it in the rows that are kept.
# run: --start=row_tiling --stop=row_tiling --ram 300
graph (%x "x": f32[1,1,12,2]) {
  %w: f32[2,1,1,1] = const {1,2}
  %d: f32[2,2,3,1] = const {1,2,3,4,5,6,7,8,9,10,11,12}
  %v: f32[1,2,1,1] = const {1,2}
  %a: f32[1,2,12,2] = conv(%x, %w) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %b: f32[1,2,12,2] = conv(%a, %d) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[1,0], pad_hi=[1,0]}
  %e: f32[1,2,12,2] = add(%b, %a)
  %f: f32[1,1,12,2] = conv(%e, %v) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %s: f32[1,1] = reduce_sum(%f) {axes=[2,3], keep=0}
  return %s "s"
}

# expect
ingot 2
graph
(%1 "x": f32[1,1,12,2]) {
  %2: f32[2,1,1,1] = const {1, 2}
  %3: f32[2,2,3,1] = const {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
  %4: f32[1,2,1,1] = const {1, 2}
  %5: f32[1,1,7,2] = slice(%1) {start=[0,0,0,0], step=[1,1,1,1], size=[1,1,7,2]}
  %6: f32[1,2,7,2] = conv(%5, %2) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %7: f32[1,2,2,2] = slice(%6) {keep=1, start=[0,0,5,0], step=[1,1,1,1], size=[1,2,2,2]}
  %8: f32[1,2,6,2] = conv(%6, %3) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[1,0], pad_hi=[0,0]}
  %9: f32[1,2,6,2] = slice(%6) {start=[0,0,0,0], step=[1,1,1,1], size=[1,2,6,2]}
  %10: f32[1,2,6,2] = add(%8, %9)
  %11: f32[1,1,6,2] = conv(%10, %4) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %12: f32[1,1] = reduce_sum(%11) {axes=[2,3], keep=0}
  %13: f32[1,1,5,2] = slice(%1) {start=[0,0,7,0], step=[1,1,1,1], size=[1,1,5,2]}
  %14: f32[1,2,5,2] = conv(%13, %2) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %15: f32[1,2,7,2] = concat(%7, %14) {axis=2}
  %16: f32[1,2,6,2] = conv(%15, %3) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[1,0]}
  %17: f32[1,2,6,2] = slice(%15) {start=[0,0,1,0], step=[1,1,1,1], size=[1,2,6,2]}
  %18: f32[1,2,6,2] = add(%16, %17)
  %19: f32[1,1,6,2] = conv(%18, %4) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %20: f32[1,1] = resume_sum(%19, %12) {axes=[2,3], keep=0}
  return %20 "s"
}
