# groups of two channels and one result: the channels of each are an axis of the image, over which the window goes in one step
# run: --march avx2 --start=regroup --stop=regroup
graph
(%x: f32[1,8,5]) {
  %k: f32[4,2,3] = const {-3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0}
  %y: f32[1,4,2] = conv(%x, %k) {group=4, stride=[2], dilation=[1], pad_lo=[0], pad_hi=[0]}
  return %y
}

# expect
ingot 2
graph
(%1: f32[1,8,5]) {
  %2: f32[1,4,2,5] = reshape(%1) {shape=[1,4,2,5]}
  %3: f32[4,1,2,3] = const {-3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0}
  %4: f32[1,4,1,2] = conv(%2, %3) {group=4, stride=[1,2], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %5: f32[1,4,2] = reshape(%4) {shape=[1,4,2]}
  return %5
}
