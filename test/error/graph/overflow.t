# more elements than anything can hold
# run: opt --stop=none
# exit: 4
# expect-stderr: :2: the constant has more than 2^40 elements
graph () {
  %a: f32[1000000,1000000,1000000] = const {1}
  return %a
}
