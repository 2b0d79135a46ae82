# Constants of several types, one of them returned as it is.
# output a = f32[2,2] {1.5, -0.0, inf, nan}
# output b = i8[3] {-128, 0, 127}
# output c = bool[2] {true, false}
# output d = u64[] {18446744073709551615}
graph () {
  %a: f32[2,2] = const {1.5, -0.0, inf, nan}
  %b: i8[3] = const {-128, 0, 127}
  %c: bool[2] = const {true, false}
  %d: u64[] = const {18446744073709551615}
  return %a "a", %b "b", %c "c", %d "d"
}
