# two convolutions of one value share the gather, which cse finds behind the pass
# run: --march avx2 --start=regroup --stop=widen_i8
graph
(%x: f32[1,4,3,3]) {
  %k: f32[8,1,2,2] = const {-3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2}
  %l: f32[8,1,1,3] = const {-3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0}
  %y: f32[1,8,2,2] = conv(%x, %k) {group=4, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %z: f32[1,8,3,1] = conv(%x, %l) {group=4, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  return %y, %z
}

# expect
ingot 2
graph
(%1: f32[1,4,3,3]) {
  %2: f32[8,1,2,2] = const {-3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2}
  %3: f32[8,1,1,3] = const {-3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0}
  %4: i64[8] = const {0, 0, 1, 1, 2, 2, 3, 3}
  %5: f32[1,8,3,3] = gather(%1, %4) {axis=1}
  %6: f32[1,8,2,2] = conv(%5, %2) {group=8, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %7: f32[1,8,3,1] = conv(%5, %3) {group=8, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  return %6, %7
}
