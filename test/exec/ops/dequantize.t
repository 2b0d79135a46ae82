# Blocks of two formats, by hand: 4 bits with a half as scale and one that is added; 8 bits.
# input x = u8[1,20] {0, 60, 0, 192, 33, 240, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 15}
# input y = u8[2,2] {0, 60, 0, 252}
# output a = f32[4] {-1, -2, 0, 13}
# output b = f32[2] {1, -inf}
graph (%x "x": u8[1,20], %y "y": u8[2,2]) {
  %all: f32[32] = dequantize(%x) {kind = "Q4_1"}
  %p: f32[2] = slice(%all) {start = [0], step = [1], size = [2]}
  %q: f32[2] = slice(%all) {start = [16], step = [1], size = [2]}
  %a: f32[4] = concat(%p, %q) {axis = 0}
  %b: f32[2] = dequantize(%y) {kind = "F16"}
  return %a "a", %b "b"
}
