# bytes taken apart and put together with the same scale and zero point are the bytes
# run: --start=quant --stop=quant
graph (%x: u8[2,3]) {
  %z: i32[] = const {7}
  %sx: f32[] = const {0.5}
  %xi: i32[2,3] = cast(%x) {to=i32}
  %xz: i32[2,3] = sub(%xi, %z)
  %xf: f32[2,3] = cast(%xz) {to=f32}
  %xs: f32[2,3] = mul(%xf, %sx)
  %d: f32[2,3] = div(%xs, %sx)
  %r: f32[2,3] = round(%d)
  %zf: f32[] = const {7}
  %m: f32[2,3] = add(%r, %zf)
  %y: u8[2,3] = cast(%m) {to=u8, sat=1}
  return %y
}

# expect
ingot 2
graph
(%1: u8[2,3]) {
  return %1
}
