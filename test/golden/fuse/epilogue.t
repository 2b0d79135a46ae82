# bias, residual and activation end in the accumulator of the convolution; a value used twice keeps its buffer
# run: --start=fuse --stop=fuse
graph
(%x: f32[1,2,4,4], %w: f32[2,2,3,3], %b: f32[2,1,1]) {
  %z: f32[] = const {0}
  %c: f32[1,2,4,4] = conv(%x, %w) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}
  %d: f32[1,2,4,4] = add(%c, %b)
  %e: f32[1,2,4,4] = add(%d, %x)
  %f: f32[1,2,4,4] = max(%e, %z)
  %g: f32[1,2,4,4] = conv(%f, %w) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}
  %h: f32[1,2,4,4] = exp(%g)
  %i: f32[1,2,4,4] = mul(%h, %h)
  return %i
}

# expect
ingot 2
graph
(%1: f32[1,2,4,4], %2: f32[2,2,3,3], %3: f32[2,1,1]) {
  %4: f32[] = const {0}
  %5: f32[1,2,4,4] epilogue = conv(%1, %2) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}
  %6: f32[1,2,4,4] inline = add(%5, %3)
  %7: f32[1,2,4,4] inline = add(%6, %1)
  %8: f32[1,2,4,4] = max(%7, %4)
  %9: f32[1,2,4,4] epilogue = conv(%8, %2) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}
  %10: f32[1,2,4,4] = exp(%9)
  %11: f32[1,2,4,4] = mul(%10, %10)
  return %11
}
