# Results that no node computes for itself: a parameter, a constant, a view, one value twice, a view of a result.
# input x = f32[2,3] {1, 2, 3, 4, 5, 6}
# output a = f32[2,3] {1, 2, 3, 4, 5, 6}
# output b = f32[2,3] {1, 2, 3, 4, 5, 6}
# output c = i32[2] {7, 8}
# output d = f32[3,2] {1, 2, 3, 4, 5, 6}
# output e = f32[2,3] {2, 4, 6, 8, 10, 12}
# output f = f32[2,3] {2, 4, 6, 8, 10, 12}
# output g = f32[6] {2, 4, 6, 8, 10, 12}
graph (%x "x": f32[2,3]) {
  %k: i32[2] = const {7, 8}
  %v: f32[3,2] = reshape(%x) {shape = [3,2]}
  %y: f32[2,3] = add(%x, %x)
  %w: f32[6] = reshape(%y) {shape = [6]}
  return %x "a", %x "b", %k "c", %v "d", %y "e", %y "f", %w "g"
}
