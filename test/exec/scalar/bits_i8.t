# Bits; shifts by the width or more give 0, or -1 for negative numbers shifted right.
# input a = i8[4] {12, -128, -1, 1}
# input b = i8[4] {3, 1, 8, 7}
# output and = i8[4] {0, 0, 8, 1}
# output or = i8[4] {15, -127, -1, 7}
# output xor = i8[4] {15, -127, -9, 6}
# output shl = i8[4] {96, 0, 0, -128}
# output shr = i8[4] {1, -64, -1, 0}
graph (%a "a": i8[4], %b "b": i8[4]) {
  %and: i8[4] = and(%a, %b)
  %or: i8[4] = or(%a, %b)
  %xor: i8[4] = xor(%a, %b)
  %shl: i8[4] = shl(%a, %b)
  %shr: i8[4] = shr(%a, %b)
  return %and "and", %or "or", %xor "xor", %shl "shl", %shr "shr"
}
