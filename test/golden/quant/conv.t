# a convolution of dequantized values, its bias and what quantizes the result: integers, then one product
# run: --start=quant --stop=quant
graph (%x: u8[1,2,4,4]) {
  %z: i32[] = const {7}
  %sx: f32[] = const {0.5}
  %xi: i32[1,2,4,4] = cast(%x) {to=i32}
  %xz: i32[1,2,4,4] = sub(%xi, %z)
  %xf: f32[1,2,4,4] = cast(%xz) {to=f32}
  %xs: f32[1,2,4,4] = mul(%xf, %sx)
  %w: i8[2,2,1,1] = const {1, -2, 127, -128}
  %sw: f32[2,1,1,1] = const {0.25, 0.125}
  %wi: i32[2,2,1,1] = cast(%w) {to=i32}
  %wf: f32[2,2,1,1] = cast(%wi) {to=f32}
  %ws: f32[2,2,1,1] = mul(%wf, %sw)
  %c: f32[1,2,4,4] = conv(%xs, %ws) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %b: f32[2,1,1] = const {1, -0.5}
  %cb: f32[1,2,4,4] = add(%c, %b)
  %zero: f32[] = const {0}
  %relu: f32[1,2,4,4] = max(%cb, %zero)
  %so: f32[] = const {0.25}
  %d: f32[1,2,4,4] = div(%relu, %so)
  %r: f32[1,2,4,4] = round(%d)
  %y: u8[1,2,4,4] = cast(%r) {to=u8, sat=1}
  return %y
}

# expect
ingot 2
graph
(%1: u8[1,2,4,4]) {
  %2: i32[] = const {7}
  %3: i32[1,2,4,4] = cast(%1) {to=i32}
  %4: i32[1,2,4,4] = sub(%3, %2)
  %5: i32[2,2,1,1] = const {1, -2, 127, -128}
  %6: i32[1,2,4,4] = conv(%4, %5) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %7: i32[2,1,1] = const {8, -8}
  %8: i32[1,2,4,4] = add(%6, %7)
  %9: f32[2,1,1] = const {0.5, 0.25}
  %10: f32[1,2,4,4] = cast(%8) {to=f32}
  %11: f32[1,2,4,4] = mul(%10, %9)
  %12: f32[] = const {0}
  %13: f32[1,2,4,4] = max(%11, %12)
  %14: f32[1,2,4,4] = round(%13)
  %15: u8[1,2,4,4] = cast(%14) {to=u8, sat=1}
  return %15
}
