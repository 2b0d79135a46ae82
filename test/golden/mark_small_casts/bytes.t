# what bytes and constants make cannot be large, also where integers are between them; what floats of an input make can, and so can integers times a large number
# run: --start=mark_small_casts --stop=mark_small_casts
graph (%a: u8[8], %b: i8[8], %f: f32[8], %n: i32[8]) {
  %z: i32[] = const {120}
  %s: f32[] = const {0.5}
  %t: f32[] = const {100}
  %k: f32[] = const {-3}
  %o: f32[] = const {0}
  %1: i32[8] = cast(%a) {to=i32}
  %2: i32[8] = sub(%1, %z)
  %3: f32[8] = cast(%2) {to=f32}
  %4: f32[8] = mul(%3, %t)
  %5: f32[8] = cast(%b) {to=f32}
  %6: f32[8] = div(%5, %s)
  %7: f32[8] = sub(%4, %6)
  %8: f32[8] = max(%7, %o)
  %9: f32[8] = round(%8)
  %10: f32[8] = add(%9, %k)
  %near: i8[8] = cast(%10) {to=i8, sat=1}
  %11: f32[8] = mul(%f, %s)
  %12: f32[8] = round(%11)
  %input: u8[8] = cast(%12) {to=u8, sat=1}
  %13: f32[8] = cast(%n) {to=f32}
  %14: f32[8] = mul(%13, %s)
  %15: f32[8] = round(%14)
  %large: u8[8] = cast(%15) {to=u8, sat=1}
  %16: f32[8] = div(%5, %3)
  %17: f32[8] = round(%16)
  %zero: i8[8] = cast(%17) {to=i8, sat=1}
  %18: i32[8] = mul(%n, %z)
  %19: f32[8] = cast(%18) {to=f32}
  %20: f32[] = const {0.001}
  %21: f32[8] = mul(%19, %20)
  %22: f32[8] = round(%21)
  %wraps: i8[8] = cast(%22) {to=i8, sat=1}
  return %near, %input, %large, %zero, %wraps
}

# expect
ingot 2
graph
(%1: u8[8], %2: i8[8], %3: f32[8], %4: i32[8]) {
  %5: i32[] = const {120}
  %6: f32[] = const {0.5}
  %7: f32[] = const {100}
  %8: f32[] = const {-3}
  %9: f32[] = const {0}
  %10: i32[8] = cast(%1) {to=i32}
  %11: i32[8] = sub(%10, %5)
  %12: f32[8] = cast(%11) {to=f32}
  %13: f32[8] = mul(%12, %7)
  %14: f32[8] = cast(%2) {to=f32}
  %15: f32[8] = div(%14, %6)
  %16: f32[8] = sub(%13, %15)
  %17: f32[8] = max(%16, %9)
  %18: f32[8] = round(%17)
  %19: f32[8] = add(%18, %8)
  %20: i8[8] = cast(%19) {to=i8, sat=2}
  %21: f32[8] = mul(%3, %6)
  %22: f32[8] = round(%21)
  %23: u8[8] = cast(%22) {to=u8, sat=1}
  %24: f32[8] = cast(%4) {to=f32}
  %25: f32[8] = mul(%24, %6)
  %26: f32[8] = round(%25)
  %27: u8[8] = cast(%26) {to=u8, sat=1}
  %28: f32[8] = div(%14, %12)
  %29: f32[8] = round(%28)
  %30: i8[8] = cast(%29) {to=i8, sat=1}
  %31: i32[8] = mul(%4, %5)
  %32: f32[8] = cast(%31) {to=f32}
  %33: f32[] = const {0.001}
  %34: f32[8] = mul(%32, %33)
  %35: f32[8] = round(%34)
  %36: i8[8] = cast(%35) {to=i8, sat=2}
  return %20, %23, %27, %30, %36
}
