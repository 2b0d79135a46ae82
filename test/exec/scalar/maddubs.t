# Each half of 16 bits by itself: the sum of two products of bytes saturates, and is added without carry.
# input a = i32[7] {-1, 16843009, 255, -16777216, -1, 252645135, -2147450880}
# input b = i32[7] {-2139062144, 2139062143, 128, 2130706432, 2139062143, -2122219135, -2147450880}
# input c = i32[7] {0, 10, 1, -5, 2147483647, -65536, 3}
# output y = i32[7] {-2147450880, 16646408, 32897, 2122383355, -98306, -249695970, -1073692669}
graph (%a "a": i32[7], %b "b": i32[7], %c "c": i32[7]) {
  %y: i32[7] = maddubs(%a, %b, %c)
  return %y "y"
}
