# a sum that goes on needs an axis along which it does
# run: opt --stop=none
# exit: 4
# expect-stderr: :2: resume_sum: expected at least one axis
graph (%x: f32[3]) {
  %y: f32[3] = resume_sum(%x, %x) {axes=[], keep=0}
  return %y
}
