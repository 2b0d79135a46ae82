# bytes with signs may be 255 from their zero point: these sums may leave what floats hold, and stay integers
# run: --start=regroup --stop=regroup --march avx2
graph (%x: i8[1,8,4,4]) {
  %w: i32[4,4,1,1] = const {30000, 30000, 30000, 30000, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
  %z: i32[] = const {127}
  %s: f32[] = const {0.01}
  %1: i32[1,8,4,4] = cast(%x) {to=i32}
  %2: i32[1,8,4,4] = sub(%1, %z)
  %3: i32[1,4,4,4] = conv(%2, %w) {group=2, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %4: f32[1,4,4,4] = cast(%3) {to=f32}
  %5: f32[1,4,4,4] = mul(%4, %s)
  return %5
}

# expect
ingot 2
graph
(%1: i8[1,8,4,4]) {
  %2: i32[4,4,1,1] = const {30000, 30000, 30000, 30000, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
  %3: i32[] = const {127}
  %4: f32[] = const {0.01}
  %5: i32[1,8,4,4] = cast(%1) {to=i32}
  %6: i32[1,8,4,4] = sub(%5, %3)
  %7: i32[1,4,4,4] = conv(%6, %2) {group=2, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %8: f32[1,4,4,4] = cast(%7) {to=f32}
  %9: f32[1,4,4,4] = mul(%8, %4)
  return %9
}
