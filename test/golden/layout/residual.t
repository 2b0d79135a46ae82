# a sum of blocks is in blocks, and the convolution behind it reads them with its border; both copies to plain order are for results
# run: --march=avx2 --start=layout --stop=layout
graph
(%x: f32[1,1,3,3]) {
  %k: f32[8,1,1,1] = const {-3, 2, 0, -2, 3, 1, -1, -3}
  %d: f32[8,1,3,3] = const {-3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2}
  %a: f32[1,8,3,3] = conv(%x, %k) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %b: f32[1,8,3,3] = tanh(%a)
  %c: f32[1,8,3,3] = add(%a, %b)
  %e: f32[1,8,3,3] = conv(%c, %d) {group=8, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}
  return %c, %e
}

# expect
ingot 2
graph
(%1: f32[1,1,3,3]) {
  %2: f32[8,1,1,1] = const {-3, 2, 0, -2, 3, 1, -1, -3}
  %3: f32[8,1,3,3] = const {-3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2}
  %4: f32[1,8,3,3] layout(8, [0,0], [0,0]) = conv(%1, %2) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %5: f32[1,8,3,3] layout(8, [0,0], [0,0]) = tanh(%4)
  %6: f32[1,8,3,3] layout(8, [1,1], [1,1]) = add(%4, %5)
  %7: f32[1,8,3,3] layout(8, [0,0], [0,0]) = conv(%6, %3) {group=8, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}
  %8: f32[1,8,3,3] = broadcast(%6) {shape=[1,8,3,3]}
  %9: f32[1,8,3,3] = broadcast(%7) {shape=[1,8,3,3]}
  return %8, %9
}
