# the largest of 25 elements is that of the largest of each line, with what never wins around them all, but not where channels are lanes, behind a
# convolution; of nine they are compared at once
# run: --march avx2 --start=split_pools --stop=split_pools
graph
(%x: f32[1,8,9,9], %y: f32[1,8,6,6,6]) {
  %a: f32[1,8,9,9] = pool_max(%x) {window=[5,5], stride=[1,1], dilation=[1,1], pad_lo=[2,2], pad_hi=[2,2]}
  %b: f32[1,8,3,2] = pool_max(%x) {window=[7,3], stride=[2,4], dilation=[1,2], pad_lo=[2,0], pad_hi=[1,0]}
  %c: f32[1,8,7,7] = pool_max(%x) {window=[3,3], stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %d: f32[1,8,4,4,4] = pool_max(%y) {window=[3,3,3], stride=[1,1,1], dilation=[1,1,1], pad_lo=[0,0,0], pad_hi=[0,0,0]}
  %e: f32[1,8,2,2,2] = pool_max(%y) {window=[3,3,3], stride=[2,2,2], dilation=[1,1,1], pad_lo=[0,0,0], pad_hi=[0,0,0]}
  %w: f32[8,8,1,1] = const {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
  %v: f32[1,8,9,9] = conv(%x, %w) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %f: f32[1,8,9,9] = pool_max(%v) {window=[5,5], stride=[1,1], dilation=[1,1], pad_lo=[2,2], pad_hi=[2,2]}
  return %a, %b, %c, %d, %e, %f
}

# expect
ingot 2
graph
(%1: f32[1,8,9,9], %2: f32[1,8,6,6,6]) {
  %3: f32[] = const {-inf}
  %4: f32[1,8,13,13] = pad(%1, %3) {lo=[0,0,2,2], hi=[0,0,2,2], interior=[0,0,0,0]}
  %5: f32[1,8,13,9] = pool_max(%4) {stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0], window=[1,5]}
  %6: f32[1,8,9,9] = pool_max(%5) {stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0], window=[5,1]}
  %7: f32[1,8,9,2] = pool_max(%1) {stride=[1,4], dilation=[1,2], pad_lo=[0,0], pad_hi=[0,0], window=[1,3]}
  %8: f32[1,8,3,2] = pool_max(%7) {stride=[2,1], dilation=[1,1], pad_lo=[2,0], pad_hi=[1,0], window=[7,1]}
  %9: f32[1,8,7,7] = pool_max(%1) {stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0], window=[3,3]}
  %10: f32[1,8,6,6,4] = pool_max(%2) {stride=[1,1,1], dilation=[1,1,1], pad_lo=[0,0,0], pad_hi=[0,0,0], window=[1,1,3]}
  %11: f32[1,8,6,4,4] = pool_max(%10) {stride=[1,1,1], dilation=[1,1,1], pad_lo=[0,0,0], pad_hi=[0,0,0], window=[1,3,1]}
  %12: f32[1,8,4,4,4] = pool_max(%11) {stride=[1,1,1], dilation=[1,1,1], pad_lo=[0,0,0], pad_hi=[0,0,0], window=[3,1,1]}
  %13: f32[1,8,6,6,2] = pool_max(%2) {stride=[1,1,2], dilation=[1,1,1], pad_lo=[0,0,0], pad_hi=[0,0,0], window=[1,1,3]}
  %14: f32[1,8,6,2,2] = pool_max(%13) {stride=[1,2,1], dilation=[1,1,1], pad_lo=[0,0,0], pad_hi=[0,0,0], window=[1,3,1]}
  %15: f32[1,8,2,2,2] = pool_max(%14) {stride=[2,1,1], dilation=[1,1,1], pad_lo=[0,0,0], pad_hi=[0,0,0], window=[3,1,1]}
  %16: f32[8,8,1,1] = const {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
  %17: f32[1,8,9,9] = conv(%1, %16) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %18: f32[1,8,9,9] = pool_max(%17) {stride=[1,1], dilation=[1,1], pad_lo=[0,2], pad_hi=[0,2], window=[1,5]}
  %19: f32[1,8,9,9] = pool_max(%18) {stride=[1,1], dilation=[1,1], pad_lo=[2,0], pad_hi=[2,0], window=[5,1]}
  return %6, %8, %9, %12, %15, %19
}
