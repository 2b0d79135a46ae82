# To f16, bf16 and f8 and back: ties to even, overflow to infinity in f16, to the largest value in f8.
# input x = f32[4] {1.00048828125, 70000, 500, -0.3}
# output h = f32[4] {1, inf, 500, -0.300048828125}
# output b = f32[4] {1, 70144, 500, -0.30078125}
# output e = f32[4] {1, 448, 448, -0.3125}
graph (%x "x": f32[4]) {
  %h1: f16[4] = cast(%x) {to = f16}
  %h: f32[4] = cast(%h1) {to = f32}
  %b1: bf16[4] = cast(%x) {to = bf16}
  %b: f32[4] = cast(%b1) {to = f32}
  %e1: f8e4m3fn[4] = cast(%x) {to = f8e4m3fn}
  %e: f32[4] = cast(%e1) {to = f32}
  return %h "h", %b "b", %e "e"
}
