# fewer elements than the shape has
# run: opt --stop=none
# exit: 4
# expect-stderr: expected ',', found }
graph () {
  %a: f32[3] = const {1, 2}
  return %a
}
