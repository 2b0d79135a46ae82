# the largest of quantized values is that of the bytes, and with the same scale nothing else is left
# run: --start=quant --stop=quant
graph (%x: u8[1,2,4,4]) {
  %z: i32[] = const {7}
  %s: f32[] = const {0.3}
  %xi: i32[1,2,4,4] = cast(%x) {to=i32}
  %xz: i32[1,2,4,4] = sub(%xi, %z)
  %xf: f32[1,2,4,4] = cast(%xz) {to=f32}
  %xs: f32[1,2,4,4] = mul(%xf, %s)
  %p: f32[1,2,4,4] = pool_max(%xs) {window=[3,3], stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}
  %d: f32[1,2,4,4] = div(%p, %s)
  %r: f32[1,2,4,4] = round(%d)
  %zf: f32[] = const {7}
  %m: f32[1,2,4,4] = add(%r, %zf)
  %y: u8[1,2,4,4] = cast(%m) {to=u8, sat=1}
  return %y
}

# expect
ingot 2
graph
(%1: u8[1,2,4,4]) {
  %2: u8[1,2,4,4] = pool_max(%1) {stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1], window=[3,3]}
  return %2
}
