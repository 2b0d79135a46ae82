# a sum that goes on needs an axis along which it does
# run: opt --stop=none
# exit: 4
# expect-stderr: :2: resume_sum over no axis
graph (%x: f32[3]) {
  %y: f32[3] = resume_sum(%x, %x) {axes=[], keep=0}
  return %y
}
