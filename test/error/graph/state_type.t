# the next value of a parameter has its type
# run: opt --stop=none
# exit: 4
# expect-stderr: 'y' cannot be the next value of 'h': their shapes differ
graph (%1 "h": f32[2]) {
  %2: f32[4] = concat(%1, %1) {axis=0}
  return %2 "y" next %1
}
