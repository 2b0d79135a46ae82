# too few operands
# run: opt --stop=none
# exit: 4
# expect-stderr: :2: add takes 2 to 2 operands, found 1
graph (%x: f32[2]) {
  %y: f32[2] = add(%x)
  return %y
}
