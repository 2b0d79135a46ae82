# Strings in between bytes: moved, chosen, compared; shorter rows are as good as longer ones.
# input x = u8[2,3] {97, 98, 0, 99, 0, 0}
# input y = u8[2,4] {97, 98, 0, 0, 0, 0, 0, 0}
# input c = bool[2] {false, true}
# output e = bool[2] {true, false}
# output n = bool[2,3] {false, false, true, true, false, false}
# output a = u8[4,5] {99, 0, 0, 0, 0, 97, 98, 0, 0, 0, 97, 98, 0, 0, 0, 0, 0, 0, 0, 0}
# output b = u8[2,4] {97, 98, 0, 0, 99, 0, 0, 0}
# output d = u8[1,2,2,2] {97, 98, 99, 0, 97, 98, 99, 0}
# output p = u8[4,2] {0, 0, 97, 98, 99, 0, 0, 0}
# output s = u8[2,3] {97, 98, 0, 120, 121, 122}
# output g = u8[1,2] {99, 0}
graph (%x "x": u8[2,3], %y "y": u8[2,4], %c "c": bool[2]) {
  %s: str[2] = str_decode(%x)
  %t: str[2] = str_decode(%y)
  %e: bool[2] = eq(%s, %t)
  %k: str[3] = const {"c", "cc", "ab"}
  %s1: str[2,1] = reshape(%s) {shape = [2,1]}
  %n1: bool[2,3] = ne(%s1, %k)
  %n: bool[2,3] = not(%n1)
  %two: str[2] = slice(%s) {start = [1], step = [-1], size = [2]}
  %four: str[4] = concat(%two, %t) {axis = 0}
  %a: u8[4,5] = str_encode(%four) {k = [5]}
  %sel: str[2] = select(%c, %s, %t)
  %b: u8[2,4] = str_encode(%sel) {k = [4]}
  %wide: str[2,2] = broadcast(%s) {shape = [2,2]}
  %high: str[1,2,2] = reshape(%wide) {shape = [1,2,2]}
  %d: u8[1,2,2,2] = str_encode(%high) {k = [2]}
  %nothing: str[] = const {""}
  %padded: str[4] = pad(%s, %nothing) {lo = [1], hi = [1], interior = [0]}
  %p: u8[4,2] = str_encode(%padded) {k = [2]}
  %i: i64[1] = const {1}
  %xyz: str[1] = const {"xyz"}
  %put: str[2] = scatter_elems(%s, %i, %xyz) {axis = 0, reduce = "none"}
  %q: u8[2,3] = str_encode(%put) {k = [3]}
  %got: str[1] = gather_elems(%s, %i) {axis = 0}
  %g: u8[1,2] = str_encode(%got) {k = [2]}
  return %e "e", %n "n", %a "a", %b "b", %d "d", %p "p", %q "s", %g "g"
}
