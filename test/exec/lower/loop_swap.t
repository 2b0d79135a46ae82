# Carried values that change places through views: none may be overwritten before it is read.
# input x = i32[2,2] {1, 2, 3, 4}
# input y = i32[4] {5, 6, 7, 8}
# output a = i32[2,2] {5, 6, 7, 8}
# output b = i32[4] {1, 2, 3, 4}
# output c = i32[3,2,2] {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4}
graph (%x "x": i32[2,2], %y "y": i32[4]) {
  %n: i64[] = const {3}
  %t: bool[] = const {true}
  %a: i32[2,2], %b: i32[4], %c: i32[3,2,2] = loop(%n, %t, %x, %y) {scans = 1} (%i: i64[], %g: bool[], %p: i32[2,2], %q: i32[4]) {
    %r: i32[2,2] = reshape(%q) {shape = [2,2]}
    %s: i32[4] = reshape(%p) {shape = [4]}
    return %g, %r, %s, %p
  }
  return %a "a", %b "b", %c "c"
}
