# A pool of a constant that nothing has folded: its operand has panels, and parts of its window none.
# seed 6274, exact
# target avx512
graph
() {
  %1: f32[1,1,3,9] = const {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27}
  %2: f32[1,1,3,7] = pool_max(%1) {stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1], window=[3,5]}
  return %2 "y0"
}
