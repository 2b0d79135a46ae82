# The same by way of fold, and of a value outside the loop.
# seed 1, exact
# input x0 = f32[4] {0, -2, -1, 448}
graph
sym u0 data in 0..1
(%1 "x0": f32[4]) {
  %3: bool[] = const {true}
  %11: bool[] = transpose(%3) {perm=[]}
  %12: i64[] = const {1}
  %13: bool[] = const {true}
  %14: bool[], %15: f32[4], %16: i64[u0,2,1], %17: f32[u0,4] = loop(%12, %13, %11, %1) {scans=2} (%18: i64[], %19: bool[], %20: bool[], %21: f32[4]) {
    %22: i64[2,1] = const {3, 2}
    return %11, %20, %21, %22, %21
  } sym(u0)
  return %17 "y5"
}
