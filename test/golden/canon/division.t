# division becomes multiplication only where the reciprocal is exact; rounding by a large constant stays
# run: --start=canon --stop=canon
graph
(%x: f32[3]) {
  %three: f32[] = const {3}
  %four: f32[] = const {4}
  %big: f32[] = const {12582912}
  %a: f32[3] = div(%x, %three)
  %b: f32[3] = div(%x, %four)
  %c: f32[3] = add(%x, %big)
  %d: f32[3] = sub(%c, %big)
  return %a, %b, %d
}

# expect
ingot 2
graph
(%1: f32[3]) {
  %2: f32[] = const {3}
  %3: f32[] = const {12582912}
  %4: f32[3] = div(%1, %2)
  %5: f32[] = const {0.25}
  %6: f32[3] = mul(%1, %5)
  %7: f32[3] = add(%1, %3)
  %8: f32[] = const {-12582912}
  %9: f32[3] = add(%7, %8)
  return %4, %6, %9
}
