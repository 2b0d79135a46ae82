# where four bytes are one instruction, only bytes of a convolution whose zero point is a result are stored as i16
# run: --march avx512 --start=widen_i8 --stop=widen_i8
graph conv
(%1 "x": u8[1,2,4,4], %2 "z": u8[], %3 "y": u8[1,2,4,4], %4 "d": u8[1,2,4,4]) {
  %5: i32[2,2,1,1] = const {1, 2, 3, 4}
  %6: i32[2,1,1,1] = const {5, 6}
  %7: i32[] = const {7}
  %8: i32[1,2,4,4] = cast(%1) {to=i32}
  %9: i32[] = cast(%2) {to=i32}
  %10: i32[1,2,4,4] = sub(%8, %9)
  %11: i32[1,2,4,4] = conv(%10, %5) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %12: i32[1,2,4,4] = cast(%3) {to=i32}
  %13: i32[1,2,4,4] = sub(%12, %7)
  %14: i32[1,2,4,4] = conv(%13, %5) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %15: i32[1,2,4,4] = add(%11, %14)
  %16: i32[1,2,4,4] = add(%15, %13)
  %17: i32[1,2,4,4] = cast(%4) {to=i32}
  %18: i32[1,2,4,4] = conv(%17, %6) {group=2, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %19: i32[1,2,4,4] = add(%16, %18)
  return %19 "r"
}

# expect
ingot 2
graph conv
(%1 "x": u8[1,2,4,4], %2 "z": u8[], %3 "y": u8[1,2,4,4], %4 "d": u8[1,2,4,4]) {
  %5: i32[2,2,1,1] = const {1, 2, 3, 4}
  %6: i32[2,1,1,1] = const {5, 6}
  %7: i32[] = const {7}
  %8: i16[1,2,4,4] = cast(%1) {to=i16}
  %9: i16[] = cast(%2) {to=i16}
  %10: i16[1,2,4,4] = sub(%8, %9)
  %11: i32[1,2,4,4] = cast(%10) {to=i32}
  %12: i32[1,2,4,4] = conv(%11, %5) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %13: i32[1,2,4,4] = cast(%3) {to=i32}
  %14: i32[1,2,4,4] = sub(%13, %7)
  %15: i32[1,2,4,4] = conv(%14, %5) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %16: i32[1,2,4,4] = add(%12, %15)
  %17: i32[1,2,4,4] = add(%16, %14)
  %18: i32[1,2,4,4] = cast(%4) {to=i32}
  %19: i32[1,2,4,4] = conv(%18, %6) {group=2, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %20: i32[1,2,4,4] = add(%17, %19)
  return %20 "r"
}
