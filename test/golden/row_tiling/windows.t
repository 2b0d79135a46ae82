# Each band computes the rows of every value that no band before it has computed; the last rows of what the next one reads
# again are kept. Windows at the edges keep their zeros.
# run: --start=row_tiling --stop=row_tiling --ram 240
graph (%x "x": f32[1,1,8,4]) {
  %w: f32[2,1,3,3] = const {0,1,2,3,4,5,6,7,8,0,1,2,3,4,5,6,7,8}
  %v: f32[1,2,3,3] = const {0,1,2,3,4,5,6,7,8,0,1,2,3,4,5,6,7,8}
  %zero: f32[] = const {0}
  %a: f32[1,2,8,4] = conv(%x, %w) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}
  %r: f32[1,2,8,4] = max(%a, %zero)
  %y: f32[1,1,4,2] = conv(%r, %v) {group=1, stride=[2,2], dilation=[1,1], pad_lo=[1,1], pad_hi=[0,0]}
  %s: f32[1,1] = reduce_sum(%y) {axes=[2,3], keep=0}
  return %s "s"
}

# expect
ingot 2
graph
(%1 "x": f32[1,1,8,4]) {
  %2: f32[2,1,3,3] = const {0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8}
  %3: f32[1,2,3,3] = const {0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8}
  %4: f32[] = const {0}
  %5: f32[1,1,5,4] = slice(%1) {start=[0,0,0,0], step=[1,1,1,1], size=[1,1,5,4]}
  %6: f32[1,2,4,4] = conv(%5, %2) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[0,1]}
  %7: f32[1,2,4,4] = max(%6, %4)
  %8: f32[1,2,1,4] = slice(%7) {keep=1, start=[0,0,3,0], step=[1,1,1,1], size=[1,2,1,4]}
  %9: f32[1,1,2,2] = conv(%7, %3) {group=1, stride=[2,2], dilation=[1,1], pad_lo=[1,1], pad_hi=[0,0]}
  %10: f32[1,1,5,4] = slice(%1) {start=[0,0,3,0], step=[1,1,1,1], size=[1,1,5,4]}
  %11: f32[1,2,4,4] = conv(%10, %2) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,1], pad_hi=[1,1]}
  %12: f32[1,2,4,4] = max(%11, %4)
  %13: f32[1,2,5,4] = concat(%8, %12) {axis=2}
  %14: f32[1,1,2,2] = conv(%13, %3) {group=1, stride=[2,2], dilation=[1,1], pad_lo=[0,1], pad_hi=[0,0]}
  %15: f32[1,1,4,2] = concat(%9, %14) {axis=2}
  %16: f32[1,1] = reduce_sum(%15) {axes=[2,3], keep=0}
  return %16 "s"
}
