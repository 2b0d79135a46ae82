# Plain, overlapping with pads, and dilated windows over the two trailing axes.
# input x = f32[2,4,4] {-6, -1, 4, -4, 1, 6, -2, 3, -5, 0, 5, -3, 2, -6, -1, 4, -4, 1, 6, -2, 3, -5, 0, 5, -3, 2, -6, -1, 4, -4, 1, 6}
# output a = f32[2,2,2] {6, 4, 2, 5, 3, 6, 4, 6}
# output b = f32[2,2,4] {6, 6, 6, 4, 6, 6, 6, 5, 3, 6, 6, 6, 4, 4, 6, 6}
# output c = f32[2,3,3] {5, -3, 0, -1, 4, 6, 5, -3, 0, 6, -1, 2, 1, 6, -4, -6, -1, 2}
graph (%x "x": f32[2,4,4]) {
  %a: f32[2,2,2] = pool_max(%x) {window = [2,2], stride = [2,2], dilation = [1,1], pad_lo = [0,0], pad_hi = [0,0]}
  %b: f32[2,2,4] = pool_max(%x) {window = [3,3], stride = [2,1], dilation = [1,1], pad_lo = [1,1], pad_hi = [1,1]}
  %c: f32[2,3,3] = pool_max(%x) {window = [2,2], stride = [1,1], dilation = [2,3], pad_lo = [0,1], pad_hi = [1,1]}
  return %a "a", %b "b", %c "c"
}
