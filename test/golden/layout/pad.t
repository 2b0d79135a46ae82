# channels added behind blocks stay in blocks; added in front of them they do not
# run: --march=avx2 --start=layout --stop=layout
graph
(%x: f32[1,1,2,2]) {
  %k: f32[6,1,1,1] = const {-1, -2, 0, 2, -3, -3}
  %z: f32[] = const {0}
  %c: f32[1,6,2,2] = conv(%x, %k) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %b: f32[1,9,2,2] = pad(%c, %z) {lo=[0,0,0,0], hi=[0,3,0,0], interior=[0,0,0,0]}
  %f: f32[1,9,2,2] = pad(%c, %z) {lo=[0,3,0,0], hi=[0,0,0,0], interior=[0,0,0,0]}
  %s: f32[1,9,2,2] = add(%b, %f)
  return %s
}

# expect
ingot 2
graph
(%1: f32[1,1,2,2]) {
  %2: f32[6,1,1,1] = const {-1, -2, 0, 2, -3, -3}
  %3: f32[] = const {0}
  %4: f32[1,6,2,2] layout(8, [0,0], [0,0]) = conv(%1, %2) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %5: f32[1,9,2,2] layout(8, [0,0], [0,0]) = pad(%4, %3) {lo=[0,0,0,0], hi=[0,3,0,0], interior=[0,0,0,0]}
  %6: f32[1,9,2,2] = pad(%4, %3) {lo=[0,3,0,0], hi=[0,0,0,0], interior=[0,0,0,0]}
  %7: f32[1,9,2,2] layout(8, [0,0], [0,0]) = add(%5, %6)
  %8: f32[1,9,2,2] = broadcast(%7) {shape=[1,9,2,2]}
  return %8
}
