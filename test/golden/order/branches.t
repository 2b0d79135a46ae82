# One branch after the other, not both side by side.
# run: --start=order --stop=order
graph (%x "x": f32[16]) {
  %a1: f32[100,16] = broadcast(%x) {shape = [100, 16]}
  %a2: f32[100,16] = cumsum(%a1) {axis = 0, exclusive = 0, reverse = 0}
  %b1: f32[100,16] = broadcast(%x) {shape = [100, 16]}
  %b2: f32[100,16] = cumprod(%b1) {axis = 0, exclusive = 0, reverse = 0}
  %a3: f32[16] = reduce_sum(%a2) {axes = [0], keep = 0}
  %b3: f32[16] = reduce_sum(%b2) {axes = [0], keep = 0}
  %y: f32[16] = add(%a3, %b3)
  return %y "y"
}

# expect
ingot 2
graph
(%1 "x": f32[16]) {
  %2: f32[100,16] = broadcast(%1) {shape=[100,16]}
  %3: f32[100,16] = cumprod(%2) {axis=0, exclusive=0, reverse=0}
  %4: f32[16] = reduce_sum(%3) {axes=[0], keep=0}
  %5: f32[100,16] = broadcast(%1) {shape=[100,16]}
  %6: f32[100,16] = cumsum(%5) {axis=0, exclusive=0, reverse=0}
  %7: f32[16] = reduce_sum(%6) {axes=[0], keep=0}
  %8: f32[16] = add(%7, %4)
  return %8 "y"
}
