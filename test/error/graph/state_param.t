# only a parameter has a next value
# run: opt --stop=none
# exit: 4
# expect-stderr: expected a parameter of the graph after 'next'
graph (%1 "h": f32[2]) {
  %2: f32[2] = neg(%1)
  return %2 "y" next %2
}
