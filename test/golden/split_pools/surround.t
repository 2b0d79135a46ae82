# a pad that would make a dimension more than twice as long is left to the pool, and so is one of a kind that has no -Inf
# run: --march avx2 --start=split_pools --stop=split_pools
graph
sym n in 4..9
(%x: f32[1,8,4,4], %y: f8e8m0[1,8,9,9], %z: f32[1,8,n,9]) {
  %a: f32[1,8,4,4] = pool_max(%x) {window=[7,7], stride=[1,1], dilation=[1,1], pad_lo=[3,3], pad_hi=[3,3]}
  %b: f8e8m0[1,8,9,9] = pool_max(%y) {window=[5,5], stride=[1,1], dilation=[1,1], pad_lo=[2,2], pad_hi=[2,2]}
  %c: f32[1,8,n,9] = pool_max(%z) {window=[5,5], stride=[1,1], dilation=[1,1], pad_lo=[2,2], pad_hi=[2,2]}
  %d: f32[1,8,n,9] = pool_max(%z) {window=[7,5], stride=[1,1], dilation=[1,1], pad_lo=[3,2], pad_hi=[3,2]}
  return %a, %b, %c, %d
}

# expect
ingot 2
graph
sym n in 4..9
(%1: f32[1,8,4,4], %2: f8e8m0[1,8,9,9], %3: f32[1,8,n,9]) {
  %4: f32[1,8,4,4] = pool_max(%1) {stride=[1,1], dilation=[1,1], pad_lo=[0,3], pad_hi=[0,3], window=[1,7]}
  %5: f32[1,8,4,4] = pool_max(%4) {stride=[1,1], dilation=[1,1], pad_lo=[3,0], pad_hi=[3,0], window=[7,1]}
  %6: f8e8m0[1,8,9,9] = pool_max(%2) {stride=[1,1], dilation=[1,1], pad_lo=[0,2], pad_hi=[0,2], window=[1,5]}
  %7: f8e8m0[1,8,9,9] = pool_max(%6) {stride=[1,1], dilation=[1,1], pad_lo=[2,0], pad_hi=[2,0], window=[5,1]}
  %8: f32[] = const {-inf}
  %9: f32[1,8,n+4,13] = pad(%3, %8) {lo=[0,0,2,2], hi=[0,0,2,2], interior=[0,0,0,0]}
  %10: f32[1,8,n+4,9] = pool_max(%9) {stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0], window=[1,5]}
  %11: f32[1,8,n,9] = pool_max(%10) {stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0], window=[5,1]}
  %12: f32[1,8,n,9] = pool_max(%3) {stride=[1,1], dilation=[1,1], pad_lo=[0,2], pad_hi=[0,2], window=[1,5]}
  %13: f32[1,8,n,9] = pool_max(%12) {stride=[1,1], dilation=[1,1], pad_lo=[3,0], pad_hi=[3,0], window=[7,1]}
  return %5, %7, %11, %13
}
