# zero padding becomes padding of the convolution; another value does not
# run: --start=canon --stop=canon
graph
(%x: f32[1,1,3,3], %w: f32[1,1,2,2]) {
  %z: f32[] = const {0}
  %one: f32[] = const {1}
  %p: f32[1,1,4,5] = pad(%x, %z) {lo=[0,0,0,1], hi=[0,0,1,1], interior=[0,0,0,0]}
  %a: f32[1,1,3,4] = conv(%p, %w) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %q: f32[1,1,4,4] = pad(%x, %one) {lo=[0,0,0,0], hi=[0,0,1,1], interior=[0,0,0,0]}
  %b: f32[1,1,3,3] = conv(%q, %w) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  return %a, %b
}

# expect
ingot 2
graph
(%1: f32[1,1,3,3], %2: f32[1,1,2,2]) {
  %3: f32[] = const {1}
  %4: f32[1,1,3,4] = conv(%1, %2) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,1], pad_hi=[1,1]}
  %5: f32[1,1,4,4] = pad(%1, %3) {lo=[0,0,0,0], hi=[0,0,1,1], interior=[0,0,0,0]}
  %6: f32[1,1,3,3] = conv(%5, %2) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  return %4, %6
}
