# Over the middle axis, over all axes, and over two of three with the axes kept.
# input x = f32[2,3,2] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
# output a = f32[2,2] {1, 2, 7, 8}
# output b = f32[] {1}
# output c = f32[1,3,1] {1, 3, 5}
graph (%x "x": f32[2,3,2]) {
  %a: f32[2,2] = reduce_min(%x) {axes = [1], keep = 0}
  %b: f32[] = reduce_min(%x) {axes = [0,1,2], keep = 0}
  %c: f32[1,3,1] = reduce_min(%x) {axes = [0,2], keep = 1}
  return %a "a", %b "b", %c "c"
}
