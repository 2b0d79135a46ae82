# an operator without a derivative is refused by its name, with the node it comes from
# run: opt --grad y --stop=none
# exit: 3
# expect-stderr: the gradient of bitcast is not supported: it reads the bits of a float
# expect-stderr: node 4 'bits' (BitCast)
graph (%x "x": f16[3]) {
  %b: bf16[3] = bitcast(%x) {to = bf16} @("BitCast", "bits", 4)
  %y: f32[3] = cast(%b) {to = f32}
  return %y "y"
}
