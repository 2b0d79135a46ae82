# a reshape whose result would have no elements does not lose those of its operand
# run: opt
# exit: 4
# expect-stderr: reshape: 6*n differs from 36*(n/6), which is at most 0: every run would fail
graph
sym n in 1..5
(%x "x": f32[n,6]) {
  %y: f32[4,n/6,9] = reshape(%x) {shape = [4,n/6,9]}
  return %y "y"
}
