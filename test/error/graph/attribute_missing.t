# an attribute that is not optional
# run: opt --stop=none
# exit: 4
# expect-stderr: reduce_sum lacks attribute keep
graph (%x: f32[2]) {
  %y: f32[] = reduce_sum(%x) {axes=[0]}
  return %y
}
