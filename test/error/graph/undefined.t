# a value used before its definition
# run: opt --stop=none
# exit: 4
# expect-stderr: :2: %y is not defined before this use
graph (%x: f32[2]) {
  %z: f32[2] = neg(%y)
  %y: f32[2] = neg(%x)
  return %z
}
