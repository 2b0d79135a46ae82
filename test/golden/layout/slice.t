# what a depthwise convolution reads of a slice is copied into blocks, also where the slice is of values in plain order
# run: --march=avx2 --start=layout --stop=layout
graph
(%x: f32[1,20,3,3]) {
  %k: f32[8,1,3,3] = const {-3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2}
  %s: f32[1,8,3,3] = slice(%x) {start=[0,12,0,0], size=[1,8,3,3], step=[1,1,1,1]}
  %y: f32[1,8,3,3] = conv(%s, %k) {group=8, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}
  return %y
}

# expect
ingot 2
graph
(%1: f32[1,20,3,3]) {
  %2: f32[8,1,3,3] = const {-3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2}
  %3: f32[1,8,3,3] = slice(%1) {start=[0,12,0,0], step=[1,1,1,1], size=[1,8,3,3]}
  %4: f32[1,8,3,3] layout(8, [1,1], [1,1]) = broadcast(%3) {shape=[1,8,3,3]}
  %5: f32[1,8,3,3] layout(8, [0,0], [0,0]) = conv(%4, %2) {group=8, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}
  %6: f32[1,8,3,3] = broadcast(%5) {shape=[1,8,3,3]}
  return %6
}
