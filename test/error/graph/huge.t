# a constant that the text cannot hold
# run: opt --stop=none
# exit: 4
# expect-stderr: :2: the constant has 1000000000000 elements
graph () {
  %a: f32[1000000,1000000] = const {1}
  return %a
}
