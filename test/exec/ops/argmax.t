# First and last among equals, another axis, and the first NaN wins.
# input x = i32[2,4] {1, 7, 7, 0, 5, -2, 5, -2}
# input y = f32[4] {5, nan, 9, nan}
# output a = i64[2] {1, 0}
# output b = i64[2,1] {2, 2}
# output c = i64[4] {1, 0, 0, 0}
# output d = i64[] {1}
graph (%x "x": i32[2,4], %y "y": f32[4]) {
  %a: i64[2] = argmax(%x) {axis = 1, keep = 0, last = 0}
  %b: i64[2,1] = argmax(%x) {axis = 1, keep = 1, last = 1}
  %c: i64[4] = argmax(%x) {axis = 0, keep = 0, last = 0}
  %d: i64[] = argmax(%y) {axis = 0, keep = 0, last = 1}
  return %a "a", %b "b", %c "c", %d "d"
}
