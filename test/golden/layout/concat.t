# blocks joined at multiples of their width stay blocks; 4 channels in front of others do not
# run: --march=avx2 --start=layout --stop=layout
graph
(%x: f32[1,1,2,2]) {
  %k: f32[8,1,1,1] = const {-3, 2, 0, -2, 3, 1, -1, -3}
  %n: f32[4,1,1,1] = const {-3, 2, 0, -2}
  %a: f32[1,8,2,2] = conv(%x, %k) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %b: f32[1,4,2,2] = conv(%x, %n) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %c: f32[1,16,2,2] = concat(%a, %a) {axis=1}
  %d: f32[1,12,2,2] = concat(%b, %a) {axis=1}
  %z: f32[] = const {0}
  %e: f32[1,16,2,2] = max(%c, %z)
  %f: f32[1,12,2,2] = max(%d, %z)
  return %e, %f
}

# expect
ingot 2
graph
(%1: f32[1,1,2,2]) {
  %2: f32[8,1,1,1] = const {-3, 2, 0, -2, 3, 1, -1, -3}
  %3: f32[4,1,1,1] = const {-3, 2, 0, -2}
  %4: f32[1,8,2,2] layout(8, [0,0], [0,0]) = conv(%1, %2) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %5: f32[1,4,2,2] layout(8, [0,0], [0,0]) = conv(%1, %3) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %6: f32[1,16,2,2] layout(8, [0,0], [0,0]) = concat(%4, %4) {axis=1}
  %7: f32[1,12,2,2] = concat(%5, %4) {axis=1}
  %8: f32[] = const {0}
  %9: f32[1,16,2,2] layout(8, [0,0], [0,0]) = max(%6, %8)
  %10: f32[1,12,2,2] = max(%7, %8)
  %11: f32[1,16,2,2] = broadcast(%9) {shape=[1,16,2,2]}
  return %11, %10
}
