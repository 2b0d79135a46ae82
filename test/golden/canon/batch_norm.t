# a scale of channels goes into the weights of the convolution, a bias before it is scaled along
# run: --start=canon --stop=canon
graph
(%x: f32[1,1,3,3]) {
  %w: f32[2,1,2,2] = const {1, 2, 3, 4, 5, 6, 7, 8}
  %b: f32[2,1,1] = const {1, -1}
  %k: f32[2,1,1] = const {2, 0.5}
  %o: f32[2,1,1] = const {10, 20}
  %c: f32[1,2,2,2] = conv(%x, %w) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %d: f32[1,2,2,2] = add(%c, %b)
  %e: f32[1,2,2,2] = mul(%d, %k)
  %f: f32[1,2,2,2] = add(%e, %o)
  return %f
}

# expect
ingot 2
graph
(%1: f32[1,1,3,3]) {
  %2: f32[2,1,2,2] = const {2, 4, 6, 8, 2.5, 3, 3.5, 4}
  %3: f32[1,2,2,2] = conv(%1, %2) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %4: f32[2,1,1] = const {12, 19.5}
  %5: f32[1,2,2,2] = add(%3, %4)
  return %5
}
