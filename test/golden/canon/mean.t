# a mean is a division by the number of elements, also in front of exp, where other divisions become products
# run: --start=canon --stop=canon
graph
(%x: f32[2,6]) {
  %n: f32[] = const {6}
  %k: f32[] = const {0.16666667}
  %three: f32[] = const {3}
  %s: f32[2] = reduce_sum(%x) {axes=[1], keep=0}
  %a: f32[2] = div(%s, %n)
  %b: f32[2] = exp(%a)
  %c: f32[2] = mul(%s, %k)
  %e: f32[2,6] = div(%x, %three)
  %f: f32[2,6] = exp(%e)
  %g: f32[2,6] = div(%x, %three)
  return %b, %c, %f, %g
}

# expect
ingot 2
graph
(%1: f32[2,6]) {
  %2: f32[] = const {6}
  %3: f32[] = const {3}
  %4: f32[2] = reduce_sum(%1) {axes=[1], keep=0}
  %5: f32[2] = div(%4, %2)
  %6: f32[2] = exp(%5)
  %7: f32[] = const {0.33333334}
  %8: f32[2,6] = mul(%1, %7)
  %9: f32[2,6] = exp(%8)
  %10: f32[2,6] = div(%1, %3)
  return %6, %5, %9, %10
}
