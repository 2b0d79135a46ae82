# an attribute the operator does not have
# run: opt --stop=none
# exit: 4
# expect-stderr: :2: reduce_sum has no attribute axis
graph (%x: f32[2]) {
  %y: f32[] = reduce_sum(%x) {axis=0, keep=0}
  return %y
}
