# without vectors nothing is gained
# run: --start=regroup --stop=regroup
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
  %3: f32[1,8,2,2] = conv(%1, %2) {group=4, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  return %3
}
