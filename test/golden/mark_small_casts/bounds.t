# bounds that a cast to bytes repeats are left out, also where a zero point is added; others stay, and so do those without which the operand could be large
# run: --start=mark_small_casts --stop=mark_small_casts
graph (%n: i32[8], %f: f32[8]) {
  %s: f32[] = const {0.01}
  %a: f32[] = const {0}
  %b: f32[] = const {255}
  %c: f32[] = const {200}
  %z: f32[] = const {100}
  %1: f32[8] = cast(%n) {to=f32}
  %2: f32[8] = mul(%1, %s)
  %3: f32[8] = max(%2, %a)
  %4: f32[8] = min(%3, %b)
  %5: f32[8] = round(%4)
  %both: u8[8] = cast(%5) {to=u8, sat=1}
  %6: f32[8] = add(%5, %z)
  %upper: u8[8] = cast(%6) {to=u8, sat=1}
  %7: f32[8] = min(%3, %c)
  %8: f32[8] = round(%7)
  %none: u8[8] = cast(%8) {to=u8, sat=1}
  %9: f32[8] = max(%f, %a)
  %10: f32[8] = round(%9)
  %large: u8[8] = cast(%10) {to=u8, sat=1}
  return %both, %upper, %none, %large
}

# expect
ingot 2
graph
(%1: i32[8], %2: f32[8]) {
  %3: f32[] = const {0.01}
  %4: f32[] = const {0}
  %5: f32[] = const {200}
  %6: f32[] = const {100}
  %7: f32[8] = cast(%1) {to=f32}
  %8: f32[8] = mul(%7, %3)
  %9: f32[8] = max(%8, %4)
  %10: f32[8] = round(%8)
  %11: u8[8] = cast(%10) {to=u8, sat=2}
  %12: f32[8] = round(%9)
  %13: f32[8] = add(%12, %6)
  %14: u8[8] = cast(%13) {to=u8, sat=2}
  %15: f32[8] = min(%9, %5)
  %16: f32[8] = round(%15)
  %17: u8[8] = cast(%16) {to=u8, sat=2}
  %18: f32[8] = max(%2, %4)
  %19: f32[8] = round(%18)
  %20: u8[8] = cast(%19) {to=u8, sat=1}
  return %11, %14, %17, %20
}
