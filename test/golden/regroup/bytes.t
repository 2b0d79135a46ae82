# of bytes less a zero point the bytes are gathered
# run: --march avx2 --start=regroup --stop=regroup
graph
(%x: u8[1,4,3,3]) {
  %k: i32[8,1,2,2] = const {-3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2}
  %z: i32[] = const {7}
  %c: i32[1,4,3,3] = cast(%x) {to=i32}
  %d: i32[1,4,3,3] = sub(%c, %z)
  %y: i32[1,8,2,2] = conv(%d, %k) {group=4, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %e: i32[1,8,2,2] = conv(%c, %k) {group=4, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %r: i32[1,8,2,2] = add(%y, %e)
  return %r
}

# expect
graph
(%1: u8[1,4,3,3]) {
  %2: i32[8,1,2,2] = const {-3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2}
  %3: i32[] = const {7}
  %4: i64[8] = const {0, 0, 1, 1, 2, 2, 3, 3}
  %5: u8[1,8,3,3] = gather(%1, %4) {axis=1}
  %6: i32[1,8,3,3] = cast(%5) {to=i32}
  %7: i32[1,8,3,3] = sub(%6, %3)
  %8: i32[1,8,2,2] = conv(%7, %2) {group=8, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %9: i32[1,8,2,2] = conv(%6, %2) {group=8, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %10: i32[1,8,2,2] = add(%8, %9)
  return %10
}
