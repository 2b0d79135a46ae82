# NaN wins in pool_max and is found by pool_argmax; integers have no infinity to start from.
# input x = f32[4] {1, nan, 3, 2}
# input i = i8[3] {-128, -127, -128}
# output a = f32[3] {nan, nan, 3}
# output b = i64[3] {1, 1, 2}
# output c = i8[4] {-128, -127, -127, -128}
graph (%x "x": f32[4], %i "i": i8[3]) {
  %a: f32[3] = pool_max(%x) {window = [2], stride = [1], dilation = [1], pad_lo = [0], pad_hi = [0]}
  %b: i64[3] = pool_argmax(%x) {window = [2], stride = [1], dilation = [1], pad_lo = [0], pad_hi = [0]}
  %c: i8[4] = pool_max(%i) {window = [2], stride = [1], dilation = [1], pad_lo = [1], pad_hi = [1]}
  return %a "a", %b "b", %c "c"
}
