# a bias that is a multiple of both scales (0.125) goes into the integers; 0.1 is none and is added as a float
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
  %p: f32[2,2] = contract(%xs, %ws) {spec="mk,kn->mn"}
  %b: f32[2] = const {0.25, -1}
  %c: f32[2] = const {0.1, 1}
  %y: f32[2,2] = add(%p, %b)
  %o: f32[2,2] = contract(%xs, %ws) {spec="mk,kn->mn"}
  %q: f32[2,2] = add(%o, %c)
  return %y, %q
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
  %8: f32[2] = const {0.1, 1}
  %9: i32[2] = const {2, -8}
  %10: i32[2,2] = add(%6, %9)
  %11: f32[2,2] = cast(%10) {to=f32}
  %12: f32[2,2] = mul(%11, %7)
  %13: i32[3,2] = const {1, -2, 127, -128, 5, 6}
  %14: i32[2,2] = contract(%4, %13) {spec="mk,kn->mn"}
  %15: f32[] = const {0.125}
  %16: f32[2,2] = cast(%14) {to=f32}
  %17: f32[2,2] = mul(%16, %15)
  %18: f32[2,2] = add(%17, %8)
  return %12, %18
}
