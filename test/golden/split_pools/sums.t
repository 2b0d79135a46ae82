# sums of floats are taken line by line; those of 3 x 3 do not pay for it, and those of halves would be rounded in between
# run: --march avx2 --start=split_pools --stop=split_pools
graph (%x: f32[1,1,8,8], %h: f16[1,1,8,8]) {
  %a: f32[1,1,8,8] = pool_sum(%x) {window=[5,5], stride=[1,1], dilation=[1,1], pad_lo=[2,2], pad_hi=[2,2]}
  %b: f32[1,1,8,8] = pool_sum(%x) {window=[3,3], stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}
  %c: f16[1,1,8,8] = pool_sum(%h) {window=[5,5], stride=[1,1], dilation=[1,1], pad_lo=[2,2], pad_hi=[2,2]}
  return %a, %b, %c
}

# expect
ingot 2
graph
(%1: f32[1,1,8,8], %2: f16[1,1,8,8]) {
  %3: f32[1,1,8,8] = pool_sum(%1) {stride=[1,1], dilation=[1,1], pad_lo=[0,2], pad_hi=[0,2], window=[1,5]}
  %4: f32[1,1,8,8] = pool_sum(%3) {stride=[1,1], dilation=[1,1], pad_lo=[2,0], pad_hi=[2,0], window=[5,1]}
  %5: f32[1,1,8,8] = pool_sum(%1) {stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1], window=[3,3]}
  %6: f16[1,1,8,8] = pool_sum(%2) {stride=[1,1], dilation=[1,1], pad_lo=[2,2], pad_hi=[2,2], window=[5,5]}
  return %4, %5, %6
}
