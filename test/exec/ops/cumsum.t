# Both axes, without the element itself, and from the end.
# input x = f32[2,3] {1, 2, 3, 4, 5, 6}
# output a = f32[2,3] {1, 2, 3, 5, 7, 9}
# output b = f32[2,3] {0, 1, 3, 0, 4, 9}
# output c = f32[2,3] {6, 5, 3, 15, 11, 6}
# output d = f32[2,3] {5, 3, 0, 11, 6, 0}
graph (%x "x": f32[2,3]) {
  %a: f32[2,3] = cumsum(%x) {axis = 0, exclusive = 0, reverse = 0}
  %b: f32[2,3] = cumsum(%x) {axis = 1, exclusive = 1, reverse = 0}
  %c: f32[2,3] = cumsum(%x) {axis = 1, exclusive = 0, reverse = 1}
  %d: f32[2,3] = cumsum(%x) {axis = 1, exclusive = 1, reverse = 1}
  return %a "a", %b "b", %c "c", %d "d"
}
