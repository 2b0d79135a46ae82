# weights that are not known, or whose scale varies along what is summed, stay in floats
# run: --start=quant --stop=quant
graph (%x: u8[2,3], %v: f32[3,2]) {
  %z: i32[] = const {7}
  %sx: f32[] = const {0.5}
  %xi: i32[2,3] = cast(%x) {to=i32}
  %xz: i32[2,3] = sub(%xi, %z)
  %xf: f32[2,3] = cast(%xz) {to=f32}
  %xs: f32[2,3] = mul(%xf, %sx)
  %w: i8[3,2] = const {1, -2, 127, -128, 5, 6}
  %sw: f32[3,1] = const {0.25, 0.5, 1}
  %wi: i32[3,2] = cast(%w) {to=i32}
  %wf: f32[3,2] = cast(%wi) {to=f32}
  %ws: f32[3,2] = mul(%wf, %sw)
  %y: f32[2,2] = contract(%xs, %v) {spec="mk,kn->mn"}
  %p: f32[2,2] = contract(%xs, %ws) {spec="mk,kn->mn"}
  return %y, %p
}

# expect
ingot 2
graph
(%1: u8[2,3], %2: f32[3,2]) {
  %3: i32[] = const {7}
  %4: f32[] = const {0.5}
  %5: i32[2,3] = cast(%1) {to=i32}
  %6: i32[2,3] = sub(%5, %3)
  %7: f32[2,3] = cast(%6) {to=f32}
  %8: f32[2,3] = mul(%7, %4)
  %9: i8[3,2] = const {1, -2, 127, -128, 5, 6}
  %10: f32[3,1] = const {0.25, 0.5, 1}
  %11: i32[3,2] = cast(%9) {to=i32}
  %12: f32[3,2] = cast(%11) {to=f32}
  %13: f32[3,2] = mul(%12, %10)
  %14: f32[2,2] = contract(%8, %2) {spec="mk,kn->mn"}
  %15: f32[2,2] = contract(%8, %13) {spec="mk,kn->mn"}
  return %14, %15
}
