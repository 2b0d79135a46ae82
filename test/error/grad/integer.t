# integers have no derivatives
# run: opt --grad y --stop=none
# exit: 2
# expect-stderr: --grad: 'y' is i64[3], expected a float type
graph (%x "x": f32[3]) {
  %y: i64[3] = cast(%x) {to = i64}
  return %y "y"
}
