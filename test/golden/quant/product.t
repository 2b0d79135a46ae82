# a product of dequantized values is one of integers, and both scales are one product behind it
# run: --start=quant --stop=quant
graph (%x: u8[2,3]) {
  %z: i32[] = const {7}
  %sx: f32[] = const {0.5}
  %xi: i32[2,3] = cast(%x) {to=i32}
  %xz: i32[2,3] = sub(%xi, %z)
  %xf: f32[2,3] = cast(%xz) {to=f32}
  %xs: f32[2,3] = mul(%xf, %sx)
  %w: i8[3,2] = const {1, -2, 127, -128, 5, 6}
  %sw: f32[] = const {0.25}
  %wi: i32[3,2] = cast(%w) {to=i32}
  %wf: f32[3,2] = cast(%wi) {to=f32}
  %ws: f32[3,2] = mul(%wf, %sw)
  %y: f32[2,2] = contract(%xs, %ws) {spec="mk,kn->mn"}
  return %y
}

# expect
ingot 2
graph
(%1: u8[2,3]) {
  %2: i32[] = const {7}
  %3: i32[2,3] = cast(%1) {to=i32}
  %4: i32[2,3] = sub(%3, %2)
  %5: i32[3,2] = const {1, -2, 127, -128, 5, 6}
  %6: i32[2,2] = contract(%4, %5) {spec="mk,kn->mn"}
  %7: f32[] = const {0.125}
  %8: f32[2,2] = cast(%6) {to=f32}
  %9: f32[2,2] = mul(%8, %7)
  return %9
}
