# Padding takes no part: infinite weights over it give no NaN, and a sum of nothing but -0 is 0.
# input x = f32[1,1,3] {1, 2, 3}
# input w = f32[1,1,3] {inf, 1, inf}
# input z = f32[2] {-0.0, -0.0}
# output a = f32[1,1,3] {inf, inf, inf}
# output b = f32[3] {0, 0, 0}
# output c = f32[5] {-inf, -0.0, -0.0, -0.0, -inf}
graph (%x "x": f32[1,1,3], %w "w": f32[1,1,3], %z "z": f32[2]) {
  %a: f32[1,1,3] = conv(%x, %w) {group = 1, stride = [1], dilation = [1], pad_lo = [1], pad_hi = [1]}
  %b: f32[3] = pool_sum(%z) {window = [2], stride = [1], dilation = [1], pad_lo = [1], pad_hi = [1]}
  %c: f32[5] = pool_max(%z) {window = [2], stride = [1], dilation = [1], pad_lo = [2], pad_hi = [2]}
  return %a "a", %b "b", %c "c"
}
