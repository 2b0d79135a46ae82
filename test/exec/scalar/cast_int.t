# From integers: they wrap, or saturate when asked for; large ones round to even.
# input x = i64[5] {300, -1, 16777217, 9223372036854775807, 0}
# output a = i8[5] {44, -1, 1, -1, 0}
# output s = i8[5] {127, -1, 127, 127, 0}
# output u = u64[5] {300, 18446744073709551615, 16777217, 9223372036854775807, 0}
# output f = f32[5] {300, -1, 16777216, 9.223372036854776e+18, 0}
# output b = bool[5] {true, true, true, true, false}
graph (%x "x": i64[5]) {
  %a: i8[5] = cast(%x) {to = i8}
  %s: i8[5] = cast(%x) {to = i8, sat = 1}
  %u: u64[5] = cast(%x) {to = u64}
  %f: f32[5] = cast(%x) {to = f32}
  %b: bool[5] = cast(%x) {to = bool}
  return %a "a", %s "s", %u "u", %f "f", %b "b"
}
