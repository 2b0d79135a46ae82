# f8e8m0 has no negative numbers: x - (-y) is not x + y.
# seed 1, raw
# input x1 = f8e8m0[2] {1, 64}
# input x2 = f8e8m0[2] {1, 4}
graph
(%1 "x1": f8e8m0[2], %2 "x2": f8e8m0[2]) {
  %3: f8e8m0[2] = neg(%1)
  %4: f8e8m0[2] = sub(%2, %3)
  %5: f8e8m0[2] = neg(%3)
  return %4 "y0", %5 "y1"
}
