# A large window: NaN wins, elements outside never do, and of equal zeros the first in memory is taken.
# input x = f32[1,1,4,5] {-0, 0, -1, -2, -3, -4, -inf, 0, -0, -1, -2, -3, -4, nan, -5, -6, -7, -8, -9, -inf}
# output y = f32[1,1,4,5] {-0, nan, nan, nan, nan, -0, nan, nan, nan, nan, -0, nan, nan, nan, nan, 0, nan, nan, nan, nan}
# output z = f32[1,1,1,2] {nan, nan}
# output i = i32[1,1,4,5] {7, 7, 7, 7, 7, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9}
graph (%x "x": f32[1,1,4,5]) {
  %y: f32[1,1,4,5] = pool_max(%x) {window = [5,5], stride = [1,1], dilation = [1,1], pad_lo = [2,2], pad_hi = [2,2]}
  %z: f32[1,1,1,2] = pool_max(%x) {window = [4,4], stride = [1,1], dilation = [1,1], pad_lo = [0,0], pad_hi = [0,0]}
  %k: i32[1,1,4,5] = const {1, 3, 7, 2, 1, 0, 0, 0, 0, 0, 4, -5, 5, 6, 2, 3, 9, 1, 9, 8}
  %i: i32[1,1,4,5] = pool_max(%k) {window = [5,5], stride = [1,1], dilation = [1,1], pad_lo = [2,2], pad_hi = [2,2]}
  return %y "y", %z "z", %i "i"
}
