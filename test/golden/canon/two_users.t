# a sum with zeros goes, and the product in front of it has two users then: the scale that one of them wants does not go into a second copy of the weights
# run: --start=canon --stop=canon
graph
(%x: f32[2,2]) {
  %w: f32[2,2] = const {1, 2, 3, 4}
  %m: f32[2,2] = contract(%x, %w) {spec = "mk,kn->mn"}
  %zero: f32[2] = const {0, 0}
  %b: f32[2,2] = add(%m, %zero)
  %half: f32[] = const {0.5}
  %s: f32[2,2] = mul(%b, %half)
  %e: f32[2,2] = exp(%s)
  %y: f32[2,2] = mul(%e, %b)
  return %y
}

# expect
ingot 2
graph
(%1: f32[2,2]) {
  %2: f32[2,2] = const {1, 2, 3, 4}
  %3: f32[2,2] = contract(%1, %2) {spec="mk,kn->mn"}
  %4: f32[] = const {0.5}
  %5: f32[2,2] = mul(%3, %4)
  %6: f32[2,2] = exp(%5)
  %7: f32[2,2] = mul(%3, %6)
  return %7
}
