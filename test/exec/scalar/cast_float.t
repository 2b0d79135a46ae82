# From floats: truncation, NaN gives 0, saturation when asked for; to bool.
# input x = f32[6] {2.9, -2.9, 300, -1, nan, 0}
# output i = i32[6] {2, -2, 300, -1, 0, 0}
# output u = u8[6] {2, 254, 44, 255, 0, 0}
# output s = u8[6] {2, 0, 255, 0, 0, 0}
# output b = bool[6] {true, true, true, true, true, false}
# output d = f64[6] {2.9000000953674316, -2.9000000953674316, 300, -1, nan, 0}
graph (%x "x": f32[6]) {
  %i: i32[6] = cast(%x) {to = i32}
  %u: u8[6] = cast(%x) {to = u8}
  %s: u8[6] = cast(%x) {to = u8, sat = 1}
  %b: bool[6] = cast(%x) {to = bool}
  %d: f64[6] = cast(%x) {to = f64}
  return %i "i", %u "u", %s "s", %b "b", %d "d"
}
