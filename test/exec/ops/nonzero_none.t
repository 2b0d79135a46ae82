# Nothing found: an empty result, and a sum over it.
# input x = bool[4] {false}
# output i = i64[1,0] {}
# output s = i64[] {0}
graph sym u data in 0..4 (%x "x": bool[4]) {
  %i: i64[1,u] = nonzero(%x) sym(u)
  %s: i64[] = reduce_sum(%i) {axes = [0,1], keep = 0}
  return %i "i", %s "s"
}
