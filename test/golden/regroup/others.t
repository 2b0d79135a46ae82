# depthwise convolutions, windows of one element, groups of several channels that fill vectors and one group stay
# run: --march avx2 --start=regroup --stop=regroup
graph
(%x: f32[1,4,3,3], %o: f32[1,1,3,3]) {
  %k: f32[4,1,2,2] = const {-3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2}
  %l: f32[4,2,1,1] = const {-3, 2, 0, -2, 3, 1, -1, -3}
  %m: f32[4,1,1,1] = const {-3, 2, 0, -2}
  %y: f32[1,4,2,2] = conv(%x, %k) {group=4, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %z: f32[1,4,3,3] = conv(%x, %l) {group=2, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %q: f32[1,4,3,3] = conv(%o, %m) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %p: f32[8,1,1,1] = const {-3, 2, 0, -2, 3, 1, -1, -3}
  %r: f32[1,8,3,3] = conv(%x, %p) {group=4, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  return %y, %z, %q, %r
}

# expect
ingot 2
graph
(%1: f32[1,4,3,3], %2: f32[1,1,3,3]) {
  %3: f32[4,1,2,2] = const {-3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2}
  %4: f32[4,2,1,1] = const {-3, 2, 0, -2, 3, 1, -1, -3}
  %5: f32[4,1,1,1] = const {-3, 2, 0, -2}
  %6: f32[1,4,2,2] = conv(%1, %3) {group=4, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %7: f32[1,4,3,3] = conv(%1, %4) {group=2, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %8: f32[1,4,3,3] = conv(%2, %5) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %9: f32[8,1,1,1] = const {-3, 2, 0, -2, 3, 1, -1, -3}
  %10: f32[1,8,3,3] = conv(%1, %9) {group=4, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  return %6, %7, %8, %10
}
