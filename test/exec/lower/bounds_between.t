# A bound in front of bytes counts where what is added behind it is no whole number: the cast cuts off.
# input n = i32[4] {-10000, -3, 10, 20000}
# output y = i8[4] {-127, 0, 1, 127}
# output w = u8[4] {0, 0, 1, 254}
graph (%n "n": i32[4]) {
  %s: f32[] = const {0.125}
  %a: f32[] = const {-128.5}
  %b: f32[] = const {254.5}
  %z: f32[] = const {0.5}
  %1: f32[4] = cast(%n) {to=f32}
  %2: f32[4] = mul(%1, %s)
  %3: f32[4] = max(%2, %a)
  %5: f32[4] = round(%3)
  %6: f32[4] = add(%5, %z)
  %y: i8[4] = cast(%6) {to=i8, sat=1}
  %7: f32[4] = min(%2, %b)
  %8: f32[4] = round(%7)
  %9: f32[4] = add(%8, %z)
  %w: u8[4] = cast(%9) {to=u8, sat=1}
  return %y "y", %w "w"
}
