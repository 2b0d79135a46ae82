# a group has one accumulator: the second convolution of a sum keeps its buffer
# run: --start=fuse --stop=fuse
graph
(%x: f32[1,2,4,4], %w: f32[2,2,3,3], %v: f32[2,2,3,3]) {
  %c: f32[1,2,4,4] = conv(%x, %w) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}
  %d: f32[1,2,4,4] = conv(%x, %v) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}
  %e: f32[1,2,4,4] = add(%c, %d)
  return %e
}

# expect
ingot 2
graph
(%1: f32[1,2,4,4], %2: f32[2,2,3,3], %3: f32[2,2,3,3]) {
  %4: f32[1,2,4,4] epilogue = conv(%1, %2) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}
  %5: f32[1,2,4,4] = conv(%1, %3) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}
  %6: f32[1,2,4,4] = add(%4, %5)
  return %6
}
