# conversions that lose nothing on the way
# run: --start=simplify --stop=simplify
graph
(%x: f16[2], %u: u8[2], %f: f32[2]) {
  %a: f32[2] = cast(%x) {to=f32}
  %b: f16[2] = cast(%a) {to=f16}
  %c: i64[2] = cast(%u) {to=i64}
  %d: i8[2] = cast(%c) {to=i8}
  %e: f32[2] = cast(%u) {to=f32}
  %g: i8[2] = cast(%e) {to=i8}
  %h: u8[2] = cast(%e) {to=u8}
  %i: f16[2] = cast(%f) {to=f16}
  %j: f32[2] = cast(%i) {to=f32}
  %k: f32[2] = cast(%f) {to=f32}
  %l: i32[2] = bitcast(%f) {to=i32}
  %m: f32[2] = bitcast(%l) {to=f32}
  return %b, %d, %g, %h, %j, %k, %m
}

# expect
ingot 2
graph
(%1: f16[2], %2: u8[2], %3: f32[2]) {
  %4: f32[2] = cast(%1) {to=f32}
  %5: i64[2] = cast(%2) {to=i64}
  %6: i8[2] = cast(%2) {to=i8}
  %7: f32[2] = cast(%2) {to=f32}
  %8: i8[2] = cast(%7) {to=i8}
  %9: f16[2] = cast(%3) {to=f16}
  %10: f32[2] = cast(%9) {to=f32}
  %11: i32[2] = bitcast(%3) {to=i32}
  return %1, %6, %8, %2, %10, %3, %3
}
