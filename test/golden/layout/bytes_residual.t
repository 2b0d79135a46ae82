# bytes that a convolution reads in blocks are made so, of what lies in plain order, and the other branch of a residual block reads blocks too
# run: --start=layout --stop=layout --march avx2
graph (%x: f32[1,8,1,4]) {
  %w: i32[8,8,1,1] = const {1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 8}
  %q: u8[1,8,1,4] = cast(%x) {to=u8, sat=1}
  %1: i32[1,8,1,4] = cast(%q) {to=i32}
  %2: i32[1,8,1,4] = conv(%1, %w) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %3: i32[1,8,1,4] = add(%2, %1)
  return %3
}

# expect
ingot 2
graph
(%1: f32[1,8,1,4]) {
  %2: i32[8,8,1,1] = const {1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 8}
  %3: u8[1,8,1,4] layout(8, [0,0], [0,0]) = cast(%1) {to=u8, sat=1}
  %4: i32[1,8,1,4] layout(8, [0,0], [0,0]) = cast(%3) {to=i32}
  %5: i32[1,8,1,4] layout(8, [0,0], [0,0]) = conv(%4, %2) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %6: i32[1,8,1,4] layout(8, [0,0], [0,0]) = add(%5, %4)
  %7: i32[1,8,1,4] = broadcast(%6) {shape=[1,8,1,4]}
  return %7
}
