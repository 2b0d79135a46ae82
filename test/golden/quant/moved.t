# bytes taken apart, moved by views and put together with the same scale and zero point are the bytes, moved; with another scale they are not
# run: --start=quant --stop=quant
graph (%x: u8[2,3]) {
  %z: i32[] = const {7}
  %s: f32[] = const {0.3}
  %t: f32[] = const {0.4}
  %zf: f32[] = const {7}
  %xi: i32[2,3] = cast(%x) {to=i32}
  %xz: i32[2,3] = sub(%xi, %z)
  %xf: f32[2,3] = cast(%xz) {to=f32}
  %xs: f32[2,3] = mul(%xf, %s)
  %v: f32[3,2] = transpose(%xs) {perm=[1,0]}
  %w: f32[6] = reshape(%v) {shape=[6]}
  %d: f32[6] = div(%w, %s)
  %r: f32[6] = round(%d)
  %m: f32[6] = add(%r, %zf)
  %y: u8[6] = cast(%m) {to=u8, sat=1}
  %d2: f32[6] = div(%w, %t)
  %r2: f32[6] = round(%d2)
  %m2: f32[6] = add(%r2, %zf)
  %y2: u8[6] = cast(%m2) {to=u8, sat=1}
  return %y, %y2
}

# expect
ingot 2
graph
(%1: u8[2,3]) {
  %2: i32[] = const {7}
  %3: f32[] = const {0.3}
  %4: f32[] = const {0.4}
  %5: f32[] = const {7}
  %6: i32[2,3] = cast(%1) {to=i32}
  %7: i32[2,3] = sub(%6, %2)
  %8: f32[2,3] = cast(%7) {to=f32}
  %9: f32[2,3] = mul(%8, %3)
  %10: f32[3,2] = transpose(%9) {perm=[1,0]}
  %11: f32[6] = reshape(%10) {shape=[6]}
  %12: u8[3,2] = transpose(%1) {perm=[1,0]}
  %13: u8[6] = reshape(%12) {shape=[6]}
  %14: f32[6] = div(%11, %4)
  %15: f32[6] = round(%14)
  %16: f32[6] = add(%15, %5)
  %17: u8[6] = cast(%16) {to=u8, sat=1}
  return %13, %17
}
