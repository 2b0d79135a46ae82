# a value defined twice
# run: opt --stop=none
# exit: 4
# expect-stderr: :3: %y is defined twice
graph (%x: f32[2]) {
  %y: f32[2] = neg(%x)
  %y: f32[2] = exp(%x)
  return %y
}
