# The type without a zero: a maximum, and what is not zero, need none.
# seed 1, real
# input x0 = f8e8m0[2] {0.003906, 0.5}
graph
sym u0 data in 0..2
(%1 "x0": f8e8m0[2]) {
  %2: i64[2] = pool_argmax(%1) {stride=[], dilation=[], pad_lo=[], pad_hi=[], window=[]}
  %3: i64[1,u0] = nonzero(%1) sym(u0)
  return %2 "y0", %3 "y1"
}
