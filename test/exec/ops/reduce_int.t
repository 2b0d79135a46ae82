# Integer sums and products wrap to their type; extremes of u64 compare without sign; and, or on bool.
# input x = i8[3] {100, 100, 3}
# input u = u64[3] {1, 18446744073709551615, 7}
# input p = bool[2,2] {true, true, false, true}
# output a = i8[] {-53}
# output b = i8[] {48}
# output c = u64[] {18446744073709551615}
# output d = u64[] {1}
# output e = bool[2] {true, true}
# output f = bool[2] {true, false}
graph (%x "x": i8[3], %u "u": u64[3], %p "p": bool[2,2]) {
  %a: i8[] = reduce_sum(%x) {axes = [0], keep = 0}
  %b: i8[] = reduce_prod(%x) {axes = [0], keep = 0}
  %c: u64[] = reduce_max(%u) {axes = [0], keep = 0}
  %d: u64[] = reduce_min(%u) {axes = [0], keep = 0}
  %e: bool[2] = reduce_max(%p) {axes = [1], keep = 0}
  %f: bool[2] = reduce_min(%p) {axes = [1], keep = 0}
  return %a "a", %b "b", %c "c", %d "d", %e "e", %f "f"
}
