# the largest of 25 elements is that of the largest of each line; of nine they are compared at once, and so are those that steps would leave out
# run: --march avx2 --start=pools --stop=pools
graph
(%x: f32[1,8,9,9], %y: f32[1,8,6,6,6]) {
  %a: f32[1,8,9,9] = pool_max(%x) {window=[5,5], stride=[1,1], dilation=[1,1], pad_lo=[2,2], pad_hi=[2,2]}
  %b: f32[1,8,3,2] = pool_max(%x) {window=[7,3], stride=[2,4], dilation=[1,2], pad_lo=[2,0], pad_hi=[1,0]}
  %c: f32[1,8,7,7] = pool_max(%x) {window=[3,3], stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %d: f32[1,8,4,4,4] = pool_max(%y) {window=[3,3,3], stride=[1,1,1], dilation=[1,1,1], pad_lo=[0,0,0], pad_hi=[0,0,0]}
  %e: f32[1,8,2,2,2] = pool_max(%y) {window=[3,3,3], stride=[2,2,2], dilation=[1,1,1], pad_lo=[0,0,0], pad_hi=[0,0,0]}
  return %a, %b, %c, %d, %e
}

# expect
graph
(%1: f32[1,8,9,9], %2: f32[1,8,6,6,6]) {
  %3: f32[1,8,9,9] = pool_max(%1) {stride=[1,1], dilation=[1,1], pad_lo=[0,2], pad_hi=[0,2], window=[1,5]}
  %4: f32[1,8,9,9] = pool_max(%3) {stride=[1,1], dilation=[1,1], pad_lo=[2,0], pad_hi=[2,0], window=[5,1]}
  %5: f32[1,8,3,2] = pool_max(%1) {stride=[2,4], dilation=[1,2], pad_lo=[2,0], pad_hi=[1,0], window=[7,3]}
  %6: f32[1,8,7,7] = pool_max(%1) {stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0], window=[3,3]}
  %7: f32[1,8,6,6,4] = pool_max(%2) {stride=[1,1,1], dilation=[1,1,1], pad_lo=[0,0,0], pad_hi=[0,0,0], window=[1,1,3]}
  %8: f32[1,8,6,4,4] = pool_max(%7) {stride=[1,1,1], dilation=[1,1,1], pad_lo=[0,0,0], pad_hi=[0,0,0], window=[1,3,1]}
  %9: f32[1,8,4,4,4] = pool_max(%8) {stride=[1,1,1], dilation=[1,1,1], pad_lo=[0,0,0], pad_hi=[0,0,0], window=[3,1,1]}
  %10: f32[1,8,2,2,2] = pool_max(%2) {stride=[2,2,2], dilation=[1,1,1], pad_lo=[0,0,0], pad_hi=[0,0,0], window=[3,3,3]}
  return %4, %5, %6, %9, %10
}
