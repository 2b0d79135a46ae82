# maps of bytes that are merged although they are computed in place, scalars and channels beside them; a vector of the result fills a register
# run: --march avx2 --start=fuse --stop=lower
graph flat
(%1 "a": u8[1,3,7,9], %2 "b": i8[1,3,7,9]) {
  %3: i32[1,1,1,1] = const {121}
  %4: f32[] = const {0.75}
  %5: f32[3,1,1] = const {0.5, 0.25, 2}
  %6: f32[] = const {125}
  %7: i32[1,3,7,9] = cast(%1) {to=i32}
  %8: i32[1,3,7,9] = sub(%7, %3)
  %9: f32[1,3,7,9] = cast(%8) {to=f32}
  %10: f32[1,3,7,9] = mul(%9, %4)
  %11: f32[1,3,7,9] = cast(%2) {to=f32}
  %12: f32[1,3,7,9] = mul(%11, %5)
  %13: f32[1,3,7,9] = add(%10, %12)
  %14: f32[1,3,7,9] = round(%13)
  %15: f32[1,3,7,9] = add(%14, %6)
  %16: u8[1,3,7,9] = cast(%15) {to=u8, sat=1}
  return %16 "y"
}

# expect
ingot 2
prog flat
math fused
buf a: in u8[1,3,7,9]
buf b: in i8[1,3,7,9]
buf y: out u8[1,3,7,9]
buf b6: const f32[3,1,1] = {0.5, 0.25, 2}
buf y_view: temp u8[3,63] alias y
buf a_view: temp u8[3,63] alias a
buf b_view: temp i8[3,63] alias b
buf b6_view: temp f32[3,1] alias b6
kernel "cast_sub_cast_mul_cast_mul_add_round_add"
    as map lanes 32 out y_view ns 45 reason "63 contiguous elements" {
  for i in 0..3 as batch {
    y_view[i, 0:32] = cast.u8.sat(round(cast.f32.sat(cast.i32(a_view[i, 0:32]) - splat.32(121:i32)) * splat.32(0.75) + cast.f32.sat(b_view[i, 0:32]) * splat.32(b6_view[i, 0])) + splat.32(125.0))
    y_view[i, 32:16] = cast.u8.sat(round(cast.f32.sat(cast.i32(a_view[i, 32:16]) - splat.16(121:i32)) * splat.16(0.75) + cast.f32.sat(b_view[i, 32:16]) * splat.16(b6_view[i, 0])) + splat.16(125.0))
    y_view[i, 48:8] = cast.u8.sat(round(cast.f32.sat(cast.i32(a_view[i, 48:8]) - splat.8(121:i32)) * splat.8(0.75) + cast.f32.sat(b_view[i, 48:8]) * splat.8(b6_view[i, 0])) + splat.8(125.0))
    y_view[i, 56:4] = cast.u8.sat(round(cast.f32.sat(cast.i32(a_view[i, 56:4]) - splat.4(121:i32)) * splat.4(0.75) + cast.f32.sat(b_view[i, 56:4]) * splat.4(b6_view[i, 0])) + splat.4(125.0))
    y_view[i, 59:4] = cast.u8.sat(round(cast.f32.sat(cast.i32(a_view[i, 59:4]) - splat.4(121:i32)) * splat.4(0.75) + cast.f32.sat(b_view[i, 59:4]) * splat.4(b6_view[i, 0])) + splat.4(125.0))
  }
}
