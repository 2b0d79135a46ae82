# All buffers are empty: the arena has no bytes, and C names it all the same.
# seed 1, exact
# input x0 = u8[8] {77, 74, 83, 40, 50, 54, 19, 93}
# input x1 = f32[8,8,0] {}
# input x2 = f32[8,8,0] {}
graph
sym n in 1..8
(%1 "x0": u8[n], %2 "x1": f32[n,n,0], %3 "x2": f32[n,n,0]) {
  %4: f32[n,n,0] = max(%2, %3)
  %5: f32[n,n,0] = pool_max(%4) {stride=[], dilation=[], pad_lo=[], pad_hi=[], window=[]}
  return %5 "y0"
}
