# a sum whose sign decides how it is rounded is computed once: the sign is read from the floats
# run: --start=regroup --stop=regroup --march avx2
graph (%x: u8[1,8,4,4]) {
  %w: i32[4,4,1,1] = const {1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12, 13, -14, 15, -16}
  %b: i32[4,1,1] = const {1000, -1000, 500, 0}
  %z: i32[] = const {100}
  %s: f32[] = const {0.01}
  %none: i32[] = const {0}
  %up: f32[] = const {0.51}
  %down: f32[] = const {0.49}
  %1: i32[1,8,4,4] = cast(%x) {to=i32}
  %2: i32[1,8,4,4] = sub(%1, %z)
  %3: i32[1,4,4,4] = conv(%2, %w) {group=2, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %4: i32[1,4,4,4] = add(%3, %b)
  %5: f32[1,4,4,4] = cast(%4) {to=f32}
  %6: f32[1,4,4,4] = mul(%5, %s)
  %7: bool[1,4,4,4] = lt(%4, %none)
  %8: f32[1,4,4,4] = select(%7, %down, %up)
  %y: f32[1,4,4,4] = add(%6, %8)
  return %y
}

# expect
ingot 2
graph
(%1: u8[1,8,4,4]) {
  %2: i32[] = const {100}
  %3: f32[] = const {0.01}
  %4: i32[] = const {0}
  %5: f32[] = const {0.51}
  %6: f32[] = const {0.49}
  %7: i32[1,8,4,4] = cast(%1) {to=i32}
  %8: i32[1,8,4,4] = sub(%7, %2)
  %9: f32[1,8,4,4] = cast(%8) {to=f32}
  %10: f32[4,4,1,1] = const {1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12, 13, -14, 15, -16}
  %11: f32[1,4,4,4] = conv(%9, %10) {group=2, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %12: f32[4,1,1] = const {1000, -1000, 500, 0}
  %13: f32[1,4,4,4] = add(%11, %12)
  %14: i32[1,4,4,4] = cast(%13) {to=i32}
  %15: f32[1,4,4,4] = mul(%13, %3)
  %16: bool[1,4,4,4] = lt(%14, %4)
  %17: f32[1,4,4,4] = select(%16, %6, %5)
  %18: f32[1,4,4,4] = add(%15, %17)
  return %18
}
