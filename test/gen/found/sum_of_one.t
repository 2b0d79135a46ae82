# A sum over no axes starts at +0 as any other: -0 does not stay.
# seed 1, raw
# input x0 = f32[2] {-0, 1}
graph
(%1 "x0": f32[2]) {
  %2: f32[2] = reduce_sum(%1) {axes=[], keep=1}
  return %2 "y0"
}
