# Parts of a concat are not written in place before it is known where that is.
# seed 300189, exact
# input x0 = u8[9] {0, 1, 1, 2, 2, 0, 2, 2, 2}
# input x1 = u8[7] {0, 1, 1, 1, 0, 1, 1}
graph
sym n in 1..9
sym m in 2..7
sym u2 data in 0..3
sym u3 data in 0..3
(%1 "x0": u8[n], %2 "x1": u8[m]) {
  %3: i64[] = const {3}
  %4: bool[] = const {true}
  %5: i64[], %6: i64[], %7: i64[u2] = loop(%3, %4, %3, %3) {scans=1} (%8: i64[], %9: bool[], %10: i64[], %11: i64[]) {
    %12: i64[] = const {0}
    %13: bool[] = lt(%8, %12)
    return %13, %10, %11, %11
  } sym(u2)
  %14: i64[u2] = abs(%7)
  %15: i64[] = const {3}
  %16: bool[] = const {true}
  %17: i64[], %18: i64[u3] = loop(%15, %16, %15) {scans=1} (%19: i64[], %20: bool[], %21: i64[]) {
    %22: i64[] = const {3}
    %23: bool[] = lt(%19, %22)
    return %23, %21, %15
  } sym(u3)
  %24: i64[u2+u3] = concat(%18, %14) {axis=0}
  %25: i64[2*u2+u3] = concat(%24, %7) {axis=0}
  return %17 "y1", %25 "y2"
}
