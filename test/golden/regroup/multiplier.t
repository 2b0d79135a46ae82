# two results of each channel: channels are gathered twice, and the convolution is depthwise
# run: --march avx2 --start=regroup --stop=regroup
graph
(%x: f32[1,4,3,3]) {
  %k: f32[8,1,2,2] = const {-3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2}
  %y: f32[1,8,2,2] = conv(%x, %k) {group=4, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  return %y
}

# expect
ingot 2
graph
(%1: f32[1,4,3,3]) {
  %2: f32[8,1,2,2] = const {-3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2}
  %3: i64[8] = const {0, 0, 1, 1, 2, 2, 3, 3}
  %4: f32[1,8,3,3] = gather(%1, %3) {axis=1}
  %5: f32[1,8,2,2] = conv(%4, %2) {group=8, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  return %5
}
