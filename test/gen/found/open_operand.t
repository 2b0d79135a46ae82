# An image of open width of which a window takes one step: the result has no open extent, the border of the operand would.
# seed 6300, exact
# target avx512
# input x = f32[2,2,2,3] {0, 0, 0, 0, 1.5, 1, 0, 0, 0, 0, 5.25, 0.75, 0, 0, 0, 0, 0.75, 0, 0, 0, 0, 0, -0.25, 0.5}
graph
sym n in 1..2
sym m in 1..6
(%1 "x": f32[m,2,2,n+1]) {
  %2: f32[16,2,2,1] = const {-1, -1, 0, -2, -0.5, -1.5, -0.5, 1, 1.5, 1, -2, -1.5, 0, 1.5, 1, -1.5, 0, -0.5, 1, 0, 1.5, 1, -0.5, -1.5, -1.5, 1.5, -2, -1.5, 0, 1.5, 1.5, 0, -1.5, -1.5, -0.5, -2, 1, -1.5, -1, -0.5, 0, 2, -2, 0, 0.5, -2, 0.5, 1.5, 0.5, 0.5, 1, 1.5, -1, 0, 1, -1.5, 1.5, -1.5, 1, 0, -0.5, -0.5, 1, -1}
  %3: f32[m,16,1,1] = conv(%1, %2) {group=1, stride=[1,3], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  return %3 "y0"
}
