# a parameter has one next value
# run: opt --stop=none
# exit: 4
# expect-stderr: 'h' or its next value belongs to two states
graph (%1 "h": f32[2]) {
  %2: f32[2] = neg(%1)
  return %2 "y" next %1, %2 "z" next %1
}
