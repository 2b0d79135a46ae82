# --state names an input and an output
# run: opt --state h=z FILE
# exit: 2
# expect-stderr: 'h=z': expected INPUT=OUTPUT, or auto; inputs are 
graph (%1 "h": f32[2]) {
  %2: f32[2] = neg(%1)
  return %2 "y"
}
