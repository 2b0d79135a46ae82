# Plain, overlapping with pads, and dilated windows over the two trailing axes.
# input x = f32[2,4,4] {-6, -1, 4, -4, 1, 6, -2, 3, -5, 0, 5, -3, 2, -6, -1, 4, -4, 1, 6, -2, 3, -5, 0, 5, -3, 2, -6, -1, 4, -4, 1, 6}
# output a = i64[2,2,2] {5, 2, 12, 10, 4, 2, 12, 15}
# output b = i64[2,2,4] {5, 5, 5, 2, 5, 5, 5, 10, 4, 2, 2, 2, 12, 12, 15, 15}
# output c = i64[2,3,3] {10, 11, 9, 14, 15, 5, 10, 11, 9, 2, 11, 9, 14, 15, 13, 10, 11, 9}
graph (%x "x": f32[2,4,4]) {
  %a: i64[2,2,2] = pool_argmax(%x) {window = [2,2], stride = [2,2], dilation = [1,1], pad_lo = [0,0], pad_hi = [0,0]}
  %b: i64[2,2,4] = pool_argmax(%x) {window = [3,3], stride = [2,1], dilation = [1,1], pad_lo = [1,1], pad_hi = [1,1]}
  %c: i64[2,3,3] = pool_argmax(%x) {window = [2,2], stride = [1,1], dilation = [2,3], pad_lo = [0,1], pad_hi = [1,1]}
  return %a "a", %b "b", %c "c"
}
