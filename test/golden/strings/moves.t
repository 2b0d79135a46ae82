# strings become rows of bytes, as wide as the longest
# run: --start=strings --stop=dce
graph (%x: u8[2,3], %i: i64[]) {
  %s: str[2] = str_decode(%x)
  %k: str[1] = const {"abcd"}
  %e: bool[2] = eq(%s, %k)
  %t: str[] = gather(%s, %i) {axis = 0}
  %u: str[2] = select(%e, %t, %k)
  %r: u8[2,4] = str_encode(%u) {k = [4]}
  return %e, %r
}

# expect
ingot 2
graph
(%1: u8[2,3], %2: i64[]) {
  %3: u8[] = const {0}
  %4: u8[2,4] = pad(%1, %3) {lo=[0,0], hi=[0,1], interior=[0,0]}
  %5: u8[4] = const {97, 98, 99, 100}
  %6: bool[2,4] = eq(%4, %5)
  %7: bool[2] = reduce_min(%6) {axes=[1], keep=0}
  %8: u8[3] = gather(%1, %2) {axis=0}
  %9: u8[4] = pad(%8, %3) {lo=[0], hi=[1], interior=[0]}
  %10: bool[2,1] = reshape(%7) {shape=[2,1]}
  %11: u8[2,4] = select(%10, %9, %5)
  return %7, %11
}
