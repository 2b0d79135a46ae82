# an operator that does not exist
# run: opt --stop=none
# exit: 4
# expect-stderr: :2: unknown operator frob
graph (%x: f32[2]) {
  %y: f32[2] = frob(%x)
  return %y
}
