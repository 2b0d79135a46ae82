# bytes become floats and bytes again: the same where every code comes back, also by other factors; else several factors are one
# run: --start=quant --stop=quant
graph (%x: u8[4]) {
  %z: i32[] = const {129}
  %s: f32[] = const {0.0400971919}
  %h: f32[] = const {0.353553385}
  %t: f32[] = const {0.0141764991}
  %w: f32[] = const {0.0133686569}
  %zf: f32[] = const {129}
  %xi: i32[4] = cast(%x) {to=i32}
  %xz: i32[4] = sub(%xi, %z)
  %xf: f32[4] = cast(%xz) {to=f32}
  %xs: f32[4] = mul(%xf, %s)
  %xh: f32[4] = mul(%xs, %h)
  %d: f32[4] = div(%xh, %t)
  %r: f32[4] = round(%d)
  %m: f32[4] = add(%r, %zf)
  %y: u8[4] = cast(%m) {to=u8, sat=1}
  %d2: f32[4] = div(%xh, %w)
  %r2: f32[4] = round(%d2)
  %m2: f32[4] = add(%r2, %zf)
  %y2: u8[4] = cast(%m2) {to=u8, sat=1}
  return %y, %y2
}

# expect
ingot 2
graph
(%1: u8[4]) {
  %2: i32[] = const {129}
  %3: f32[] = const {129}
  %4: i32[4] = cast(%1) {to=i32}
  %5: i32[4] = sub(%4, %2)
  %6: f32[] = const {1.060428}
  %7: f32[4] = cast(%5) {to=f32}
  %8: f32[4] = mul(%7, %6)
  %9: f32[4] = round(%8)
  %10: f32[4] = add(%9, %3)
  %11: u8[4] = cast(%10) {to=u8, sat=1}
  return %1, %11
}
