# Bytes 0 and 2, or 1 and 3, with their signs; the second operand is taken modulo 2.
# input a = i32[8] {0, -1, -2147483648, 2147483647, 8388736, 2139062143, -8421505, 16909060}
# input b = i32[8] {0, 1, 1, 1, 0, 3, 2, -1}
# output y = i32[8] {0, -1, -8388608, 8388607, -8323200, 8323199, 8323199, 65539}
# output even = i32[8] {0, -1, 0, -1, -8323200, 8323199, 8323199, 131076}
graph (%a "a": i32[8], %b "b": i32[8]) {
  %y: i32[8] = widen_i8x2(%a, %b)
  %zero: i32[] = const {0}
  %even: i32[8] = widen_i8x2(%a, %zero)
  return %y "y", %even "even"
}
