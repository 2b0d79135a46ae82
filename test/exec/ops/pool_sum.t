# Plain, overlapping with pads, and dilated windows over the two trailing axes.
# input x = f32[2,4,4] {-6, -1, 4, -4, 1, 6, -2, 3, -5, 0, 5, -3, 2, -6, -1, 4, -4, 1, 6, -2, 3, -5, 0, 5, -3, 2, -6, -1, 4, -4, 1, 6}
# output a = f32[2,2,2] {0, 1, -9, 5, -5, 9, -1, 0}
# output b = f32[2,2,4] {0, 2, 6, 1, -2, 0, 6, 6, -5, 1, 5, 9, -3, -8, -2, 5}
# output c = f32[2,3,3] {9, -18, -1, -3, 10, 0, 5, -8, 0, 0, -10, 3, 1, 18, -9, -6, -4, 2}
graph (%x "x": f32[2,4,4]) {
  %a: f32[2,2,2] = pool_sum(%x) {window = [2,2], stride = [2,2], dilation = [1,1], pad_lo = [0,0], pad_hi = [0,0]}
  %b: f32[2,2,4] = pool_sum(%x) {window = [3,3], stride = [2,1], dilation = [1,1], pad_lo = [1,1], pad_hi = [1,1]}
  %c: f32[2,3,3] = pool_sum(%x) {window = [2,2], stride = [1,1], dilation = [2,3], pad_lo = [0,1], pad_hi = [1,1]}
  return %a "a", %b "b", %c "c"
}
