# the product of what an operand is spread by must not overflow
# run: opt --stop=none
# exit: 4
# expect-stderr: :3: conv: the product of input_dilation is 9223372036854775807, expected at most 64
graph (%x "x": f32[1,1,3,3]) {
  %w: f32[1,1,1,1] = const {3}
  %y: f32[1,1,5,5] = conv(%x, %w) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0], input_dilation=[2,9223372036854775807]}
  return %y
}
