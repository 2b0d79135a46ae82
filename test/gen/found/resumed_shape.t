# A resumed sum whose kept axes a reshape drops: what it begins with has the old shape.
# seed 257, exact
# input x1 = f32[2,3] {1, 2, 3, 4, 5, 6}
# input x2 = f32[1,1] {6.5}
graph
sym n in 1..4
(%1 "x1": f32[n,3], %2 "x2": f32[1,1]) {
  %3: f32[1,1] = resume_sum(%1, %2) {axes=[0,1], keep=1}
  %4: f32[] = reshape(%3) {shape=[]}
  return %4 "y0"
}
