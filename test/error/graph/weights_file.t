# a weights file that is not there
# run: opt --stop=none
# exit: 4
# expect-stderr: are outside of the weights file of 0 bytes
graph () {
  %a: f32[100] = const @side(0, 400)
  return %a
}
