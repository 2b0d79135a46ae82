# half as wide as the vectors where 8 channels would leave half of a block empty
# run: --march=avx512 --start=layout --stop=layout
graph
(%x: f32[1,1,3,3]) {
  %k: f32[8,1,1,1] = const {-3, 2, 0, -2, 3, 1, -1, -3}
  %a: f32[1,8,3,3] = conv(%x, %k) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %z: f32[] = const {0}
  %b: f32[1,8,3,3] = max(%a, %z)
  return %b
}

# expect
ingot 2
graph
(%1: f32[1,1,3,3]) {
  %2: f32[8,1,1,1] = const {-3, 2, 0, -2, 3, 1, -1, -3}
  %3: f32[1,8,3,3] layout(8, [0,0], [0,0]) = conv(%1, %2) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %4: f32[] = const {0}
  %5: f32[1,8,3,3] layout(8, [0,0], [0,0]) = max(%3, %4)
  %6: f32[1,8,3,3] = broadcast(%5) {shape=[1,8,3,3]}
  return %6
}
