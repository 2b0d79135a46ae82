# a value that is not there
# run: opt --grad y:z --stop=none
# exit: 2
# expect-stderr: --grad: unknown value 'z'
graph (%x "x": f32[3]) {
  %y: f32[3] = exp(%x)
  return %y "y"
}
