# powers become roots where nothing is negative or -0: not behind max with 0, which leaves -0, nor behind integers, which wrap
# run: --start=canon --stop=canon
graph
(%x: f32[4], %i: i32[4]) {
  %h: f32[] = const {0.5}
  %z: f32[] = const {0}
  %s: f32[] = const {0.25}
  %a: f32[4] = max(%x, %z)
  %b: f32[4] = pow(%a, %h)
  %c: f32[4] = max(%x, %s)
  %d: f32[4] = pow(%c, %h)
  %e: i32[4] = mul(%i, %i)
  %f: f32[4] = cast(%e) {to=f32}
  %g: f32[4] = pow(%f, %h)
  return %b, %d, %g
}

# expect
ingot 2
graph
(%1: f32[4], %2: i32[4]) {
  %3: f32[] = const {0.5}
  %4: f32[] = const {0}
  %5: f32[] = const {0.25}
  %6: f32[4] = max(%1, %4)
  %7: f32[4] = pow(%6, %3)
  %8: f32[4] = max(%1, %5)
  %9: f32[4] = sqrt(%8)
  %10: i32[4] = mul(%2, %2)
  %11: f32[4] = cast(%10) {to=f32}
  %12: f32[4] = pow(%11, %3)
  return %7, %9, %12
}
