# A window far larger than its operand, and one that lies in the padding alone.
# input x = f32[2] {3, 5}
# output a = f32[3] {8, 8, 8}
# output b = f32[2] {-inf, 5}
# output c = i64[1] {1}
graph (%x "x": f32[2]) {
  %a: f32[3] = pool_sum(%x) {window = [2000000000], stride = [1], dilation = [1], pad_lo = [1000000000], pad_hi = [1000000000]}
  %b: f32[2] = pool_max(%x) {window = [1], stride = [4], dilation = [1], pad_lo = [3], pad_hi = [0]}
  %c: i64[1] = pool_argmax(%x) {window = [2000000000], stride = [3], dilation = [1], pad_lo = [1000000000], pad_hi = [1000000000]}
  return %a "a", %b "b", %c "c"
}
