# bytes in groups of several channels are multiplied as floats, where these hold all sums and the bias; where they may not, integers stay
# run: --start=regroup --stop=regroup --march avx2
graph (%x: u8[1,8,4,4]) {
  %w: i32[4,4,1,1] = const {1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12, 13, -14, 15, -16}
  %b: i32[4,1,1] = const {1000, -1000, 500, 0}
  %c: i32[4,1,1] = const {16777000, -1000, 500, 0}
  %z: i32[] = const {100}
  %s: f32[] = const {0.01}
  %1: i32[1,8,4,4] = cast(%x) {to=i32}
  %2: i32[1,8,4,4] = sub(%1, %z)
  %3: i32[1,4,4,4] = conv(%2, %w) {group=2, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %4: i32[1,4,4,4] = add(%3, %b)
  %5: f32[1,4,4,4] = cast(%4) {to=f32}
  %y: f32[1,4,4,4] = mul(%5, %s)
  %6: i32[1,4,4,4] = add(%3, %c)
  %7: f32[1,4,4,4] = cast(%6) {to=f32}
  return %y, %7
}

# expect
ingot 2
graph
(%1: u8[1,8,4,4]) {
  %2: i32[4,4,1,1] = const {1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12, 13, -14, 15, -16}
  %3: i32[4,1,1] = const {16777000, -1000, 500, 0}
  %4: i32[] = const {100}
  %5: f32[] = const {0.01}
  %6: i32[1,8,4,4] = cast(%1) {to=i32}
  %7: i32[1,8,4,4] = sub(%6, %4)
  %8: i32[1,4,4,4] = conv(%7, %2) {group=2, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %9: f32[1,8,4,4] = cast(%7) {to=f32}
  %10: f32[4,4,1,1] = const {1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12, 13, -14, 15, -16}
  %11: f32[1,4,4,4] = conv(%9, %10) {group=2, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %12: f32[4,1,1] = const {1000, -1000, 500, 0}
  %13: f32[1,4,4,4] = add(%11, %12)
  %14: f32[1,4,4,4] = mul(%13, %5)
  %15: i32[1,4,4,4] = add(%8, %3)
  %16: f32[1,4,4,4] = cast(%15) {to=f32}
  return %14, %16
}
