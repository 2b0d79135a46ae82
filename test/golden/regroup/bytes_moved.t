# bytes that are multiplied as floats are moved as bytes, and are made floats behind the new axis, where their user takes them; nothing becomes i16 for the product that is gone
# run: --start=regroup --stop=widen_i8 --march avx2
graph (%x: u8[1,8,4,4]) {
  %w: i32[8,2,3,1] = const {1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12, 13, -14, 15, -16, 17, -18, 19, -20, 21, -22, 23, -24, 25, -26, 27, -28, 29, -30, 31, -32, 33, -34, 35, -36, 37, -38, 39, -40, 41, -42, 43, -44, 45, -46, 47, -48}
  %z: i32[] = const {100}
  %1: i32[1,8,4,4] = cast(%x) {to=i32}
  %2: i32[1,8,4,4] = sub(%1, %z)
  %3: i32[1,8,2,4] = conv(%2, %w) {group=4, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %4: f32[1,8,2,4] = cast(%3) {to=f32}
  return %4
}

# expect
ingot 2
graph
(%1: u8[1,8,4,4]) {
  %2: i32[] = const {100}
  %3: i64[16] = const {0, 1, 0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7, 6, 7}
  %4: u8[1,16,4,4] = gather(%1, %3) {axis=1}
  %5: u8[1,8,2,4,4] = reshape(%4) {shape=[1,8,2,4,4]}
  %6: i32[1,8,2,4,4] = cast(%5) {to=i32}
  %7: i32[1,8,2,4,4] = sub(%6, %2)
  %8: f32[1,8,2,4,4] = cast(%7) {to=f32}
  %9: f32[8,1,2,3,1] = const {1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12, 13, -14, 15, -16, 17, -18, 19, -20, 21, -22, 23, -24, 25, -26, 27, -28, 29, -30, 31, -32, 33, -34, 35, -36, 37, -38, 39, -40, 41, -42, 43, -44, 45, -46, 47, -48}
  %10: f32[1,8,1,2,4] = conv(%8, %9) {group=8, stride=[1,1,1], dilation=[1,1,1], pad_lo=[0,0,0], pad_hi=[0,0,0]}
  %11: f32[1,8,2,4] = reshape(%10) {shape=[1,8,2,4]}
  return %11
}
