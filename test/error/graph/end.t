# the text stops in the middle
# run: opt --stop=none
# exit: 4
# expect-stderr: found the end of the text
graph (%x: f32[2]) {
  %y: f32[2] = neg(
