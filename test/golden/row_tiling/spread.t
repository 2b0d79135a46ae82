# A transposed convolution reads every row for two of its result.
# run: --start=row_tiling --stop=row_tiling --ram 340
graph (%x "x": f32[1,1,4,3]) {
  %w: f32[2,1,2,2] = const {1,2,3,4,5,6,7,8}
  %v: f32[1,2,1,1] = const {1,2}
  %a: f32[1,2,8,6] = conv(%x, %w) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1], input_dilation=[2,2]}
  %y: f32[1,1,8,6] = conv(%a, %v) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %s: f32[1,1] = reduce_sum(%y) {axes=[2,3], keep=0}
  return %s "s"
}

# expect
ingot 2
graph
(%1 "x": f32[1,1,4,3]) {
  %2: f32[2,1,2,2] = const {1, 2, 3, 4, 5, 6, 7, 8}
  %3: f32[1,2,1,1] = const {1, 2}
  %4: f32[1,1,2,3] = slice(%1) {start=[0,0,0,0], step=[1,1,1,1], size=[1,1,2,3]}
  %5: f32[1,2,4,6] = conv(%4, %2) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1], input_dilation=[2,2]}
  %6: f32[1,1,4,6] = conv(%5, %3) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %7: f32[1,1] = reduce_sum(%6) {axes=[2,3], keep=0}
  %8: f32[1,1,2,3] = slice(%1) {start=[0,0,2,0], step=[1,1,1,1], size=[1,1,2,3]}
  %9: f32[1,2,4,6] = conv(%8, %2) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1], input_dilation=[2,2]}
  %10: f32[1,1,4,6] = conv(%9, %3) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %11: f32[1,1] = resume_sum(%10, %7) {axes=[2,3], keep=0}
  return %11 "s"
}
