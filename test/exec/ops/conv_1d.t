# One dimension, a symbolic length and batch, in integers; a pointwise one; pads wider than the input.
# input x = i32[2,1,4] {1, 2, 3, 4, 5, 6, 7, 8}
# input w = i32[1,1,2] {1, 10}
# output a = i32[2,1,3] {21, 32, 43, 65, 76, 87}
# output b = i32[2,2,4] {1, 2, 3, 4, 10, 20, 30, 40, 5, 6, 7, 8, 50, 60, 70, 80}
# output c = i32[2,1,6] {0, 0, 21, 43, 0, 0, 0, 0, 65, 87, 0, 0}
graph sym n in 1..4 sym l in 2..9 (%x "x": i32[n,1,l], %w "w": i32[1,1,2]) {
  %a: i32[n,1,l-1] = conv(%x, %w) {group = 1, stride = [1], dilation = [1], pad_lo = [0], pad_hi = [0]}
  %p: i32[2,1,1] = const {1, 10}
  %b: i32[n,2,l] = conv(%x, %p) {group = 1, stride = [1], dilation = [1], pad_lo = [0], pad_hi = [0]}
  %c: i32[n,1,(l+6)/2+1] = conv(%x, %w) {group = 1, stride = [2], dilation = [1], pad_lo = [4], pad_hi = [4]}
  return %a "a", %b "b", %c "c"
}
