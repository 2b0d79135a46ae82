# Bits of an unsigned type.
# input a = u16[3] {65535, 4660, 1}
# input b = u16[3] {1, 16, 15}
# output and = u16[3] {1, 16, 1}
# output or = u16[3] {65535, 4660, 15}
# output xor = u16[3] {65534, 4644, 14}
# output shl = u16[3] {65534, 0, 32768}
# output shr = u16[3] {32767, 0, 0}
graph (%a "a": u16[3], %b "b": u16[3]) {
  %and: u16[3] = and(%a, %b)
  %or: u16[3] = or(%a, %b)
  %xor: u16[3] = xor(%a, %b)
  %shl: u16[3] = shl(%a, %b)
  %shr: u16[3] = shr(%a, %b)
  return %and "and", %or "or", %xor "xor", %shl "shl", %shr "shr"
}
