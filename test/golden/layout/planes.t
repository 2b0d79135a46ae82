# planes that would lie 8 KB apart, where all channels meet in the same lines of a cache, are a column wider
# run: --march=avx2 --start=layout --stop=layout
graph
(%x: f32[1,8,14,14], %k: f32[8,8,3,3]) {
  %z: f32[] = const {0}
  %r: f32[1,8,14,14] = max(%x, %z)
  %c: f32[1,8,14,14] = conv(%r, %k) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}
  %s: f32[1,8,14,14] = max(%c, %z)
  %d: f32[1,8,14,14] = conv(%s, %k) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}
  return %d
}

# expect
ingot 2
graph
(%1: f32[1,8,14,14], %2: f32[8,8,3,3]) {
  %3: f32[] = const {0}
  %4: f32[1,8,14,14] = max(%1, %3)
  %5: f32[1,8,14,14] layout(8, [1,1], [1,2]) = broadcast(%4) {shape=[1,8,14,14]}
  %6: f32[1,8,14,14] layout(8, [0,0], [0,0]) = conv(%5, %2) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}
  %7: f32[1,8,14,14] layout(8, [1,1], [1,2]) = max(%6, %3)
  %8: f32[1,8,14,14] layout(8, [0,0], [0,0]) = conv(%7, %2) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}
  %9: f32[1,8,14,14] = broadcast(%8) {shape=[1,8,14,14]}
  return %9
}
