# Both axes, without the element itself, and from the end.
# input x = f32[2,3] {1, 2, 3, 4, 5, 6}
# output a = f32[2,3] {1, 2, 3, 4, 10, 18}
# output b = f32[2,3] {1, 1, 2, 1, 4, 20}
# output c = f32[2,3] {6, 6, 3, 120, 30, 6}
# output d = f32[2,3] {6, 3, 1, 30, 6, 1}
graph (%x "x": f32[2,3]) {
  %a: f32[2,3] = cumprod(%x) {axis = 0, exclusive = 0, reverse = 0}
  %b: f32[2,3] = cumprod(%x) {axis = 1, exclusive = 1, reverse = 0}
  %c: f32[2,3] = cumprod(%x) {axis = 1, exclusive = 0, reverse = 1}
  %d: f32[2,3] = cumprod(%x) {axis = 1, exclusive = 1, reverse = 1}
  return %a "a", %b "b", %c "c", %d "d"
}
