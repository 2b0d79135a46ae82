# Where there is room enough nothing is cut.
# run: --start=row_tiling --stop=row_tiling --ram 1K
graph (%x "x": f32[1,1,8,4]) {
  %w: f32[2,1,3,3] = const {0,1,2,3,4,5,6,7,8,0,1,2,3,4,5,6,7,8}
  %v: f32[1,2,3,3] = const {0,1,2,3,4,5,6,7,8,0,1,2,3,4,5,6,7,8}
  %a: f32[1,2,8,4] = conv(%x, %w) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}
  %y: f32[1,1,4,2] = conv(%a, %v) {group=1, stride=[2,2], dilation=[1,1], pad_lo=[1,1], pad_hi=[0,0]}
  return %y "y"
}

# expect
ingot 2
graph
(%1 "x": f32[1,1,8,4]) {
  %2: f32[2,1,3,3] = const {0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8}
  %3: f32[1,2,3,3] = const {0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8}
  %4: f32[1,2,8,4] = conv(%1, %2) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}
  %5: f32[1,1,4,2] = conv(%4, %3) {group=1, stride=[2,2], dilation=[1,1], pad_lo=[1,1], pad_hi=[0,0]}
  return %5 "y"
}
