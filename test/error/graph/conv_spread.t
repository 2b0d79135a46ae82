# every part of a spread convolution is lowered apart: no more than 64 of them
# run: opt --stop=none
# exit: 4
# expect-stderr: :3: conv: the product of input_dilation is 4096, expected at most 64
graph (%x "x": f32[1,1,1,1,1]) {
  %w: f32[1,1,1,1,1] = const {3}
  %y: f32[1,1,1,1,1] = conv(%x, %w) {group=1, stride=[1,1,1], dilation=[1,1,1], pad_lo=[0,0,0], pad_hi=[0,0,0], input_dilation=[4096,4096,256]}
  return %y
}
