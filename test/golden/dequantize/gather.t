# rows are picked before they are taken apart; plain elements are bytes with another type
# run: --start=dequantize --stop=dequantize
graph (%i: i64[3], %w: u8[5,1,34]) {
  %f: f32[5,32] = dequantize(%w) {kind="Q8_0"}
  %y: f32[3,32] = gather(%f, %i) {axis=0}
  %h: u8[2,2] = const {0, 60, 0, 192}
  %g: f32[2] = dequantize(%h) {kind="F16"}
  return %y, %g
}

# expect
ingot 2
graph
(%1: i64[3], %2: u8[5,1,34]) {
  %3: u8[3,1,34] = gather(%2, %1) {axis=0}
  %4: u8[3,1,32] = slice(%3) {start=[0,0,2], step=[1,1,1], size=[3,1,32]}
  %5: u8[3,1,1,1,32] = reshape(%4) {shape=[3,1,1,1,32]}
  %6: i8[3,1,1,1,32] = bitcast(%5) {to=i8}
  %7: i8[3,1,32] = reshape(%6) {shape=[3,1,32]}
  %8: i32[3,1,32] = cast(%7) {to=i32}
  %9: f32[3,1,32] = cast(%8) {to=f32}
  %10: u8[3,1,1] = slice(%3) {start=[0,0,0], step=[1,1,1], size=[3,1,1]}
  %11: u16[3,1,1] = cast(%10) {to=u16}
  %12: u8[3,1,1] = slice(%3) {start=[0,0,1], step=[1,1,1], size=[3,1,1]}
  %13: u16[3,1,1] = cast(%12) {to=u16}
  %14: u16[] = const {8}
  %15: u16[3,1,1] = shl(%13, %14)
  %16: u16[3,1,1] = or(%11, %15)
  %17: f16[3,1,1] = bitcast(%16) {to=f16}
  %18: f32[3,1,1] = cast(%17) {to=f32}
  %19: f32[3,1,1,1] = reshape(%18) {shape=[3,1,1,1]}
  %20: f32[3,1,1,32] = reshape(%9) {shape=[3,1,1,32]}
  %21: f32[3,1,1,32] = mul(%19, %20)
  %22: f32[3,32] = reshape(%21) {shape=[3,32]}
  %23: u8[2,2] = const {0, 60, 0, 192}
  %24: f16[2] = const {1, -2}
  %25: f32[2] = cast(%24) {to=f32}
  return %22, %25
}
