# Windows that lie in the padding alone: rows of the result that no element reaches.
# input x = f32[1,1,2,2] {1, 2, 3, 4}
# output a = f32[1,1,3,3] {0, 0, 0, 0, 10, 0, 0, 0, 0}
# output b = f32[1,1,3,3] {-inf, -inf, -inf, -inf, 4, -inf, -inf, -inf, -inf}
# output c = f32[1,1,3,3] {0, 0, 0, 0, 50, 0, 0, 0, 0}
graph (%x "x": f32[1,1,2,2]) {
  %a: f32[1,1,3,3] = pool_sum(%x) {window = [2,2], stride = [3,3], dilation = [1,1], pad_lo = [3,3], pad_hi = [3,3]}
  %b: f32[1,1,3,3] = pool_max(%x) {window = [2,2], stride = [3,3], dilation = [1,1], pad_lo = [3,3], pad_hi = [3,3]}
  %w: f32[1,1,2,2] = const {5, 5, 5, 5}
  %c: f32[1,1,3,3] = conv(%x, %w) {group = 1, stride = [3,3], dilation = [1,1], pad_lo = [3,3], pad_hi = [3,3]}
  return %a "a", %b "b", %c "c"
}
