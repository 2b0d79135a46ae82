# bytes that convolutions read are stored as i16, less their zero point, also where that is a result; what a depthwise one reads stays
# run: --march avx2 --start=widen_i8 --stop=widen_i8
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
  %7: i16[1,2,4,4] = cast(%1) {to=i16}
  %8: i16[] = cast(%2) {to=i16}
  %9: i16[1,2,4,4] = sub(%7, %8)
  %10: i32[1,2,4,4] = cast(%9) {to=i32}
  %11: i32[1,2,4,4] = conv(%10, %5) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %12: i16[1,2,4,4] = cast(%3) {to=i16}
  %13: i16[] = const {7}
  %14: i16[1,2,4,4] = sub(%12, %13)
  %15: i32[1,2,4,4] = cast(%14) {to=i32}
  %16: i32[1,2,4,4] = conv(%15, %5) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %17: i32[1,2,4,4] = add(%11, %16)
  %18: i32[1,2,4,4] = add(%17, %15)
  %19: i32[1,2,4,4] = cast(%4) {to=i32}
  %20: i32[1,2,4,4] = conv(%19, %6) {group=2, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %21: i32[1,2,4,4] = add(%18, %20)
  return %21 "r"
}
