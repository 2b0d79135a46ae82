# Bytes of a from 0 to 255, of b from -128 to 127, lowest first; the sum wraps.
# input a = i32[5] {-1, 16843009, 255, -16777216, -1}
# input b = i32[5] {-2139062144, 2139062143, 128, 2130706432, 2139062143}
# input c = i32[5] {0, 10, 1, -5, 2147483647}
# output y = i32[5] {-130560, 518, -32639, 32380, -2147354109}
graph (%a "a": i32[5], %b "b": i32[5], %c "c": i32[5]) {
  %y: i32[5] = dot_i8x4(%a, %b, %c)
  return %y "y"
}
