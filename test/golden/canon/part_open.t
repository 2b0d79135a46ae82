# an operand whose extent is open is not cut along it: it may turn out to be 1 and stretch, or not to fit, which somebody must say; sums over it pass
# run: --start=canon --stop=canon
graph sym n in 1..4
(%x "x": f32[n,2], %y "y": f32[4,2], %z: f32[n,2,2], %p: f32[4,n]) {
  %w: f32[2,2] = const {1, 2, 3, 4}
  %c: f32[4,2] = contract(%y, %w) {spec="mk,kn->mn"}
  %a: f32[4,2] = add(%x, %c)
  %s: f32[1,2] = slice(%a) {start=[2,0], step=[1,1], size=[1,2]}
  %b: f32[4,2] = contract(%y, %z) {spec="bk,bkn->bn"}
  %t: f32[1,2] = slice(%b) {start=[2,0], step=[1,1], size=[1,2]}
  %d: f32[4,2] = contract(%y, %w) {spec="mk,nk->mn"}
  %e: f32[4,4] = concat(%x, %d) {axis=1}
  %u: f32[1,4] = slice(%e) {start=[2,0], step=[1,1], size=[1,4]}
  %f: f32[4,2] = contract(%p, %x) {spec="mk,kn->mn"}
  %v: f32[1,2] = slice(%f) {start=[2,0], step=[1,1], size=[1,2]}
  return %s, %t, %u, %v
}

# expect
ingot 2
graph
sym n in 1..4
(%1 "x": f32[n,2], %2 "y": f32[4,2], %3: f32[n,2,2], %4: f32[4,n]) {
  %5: f32[2,2] = const {1, 2, 3, 4}
  %6: f32[4,2] = contract(%2, %5) {spec="mk,kn->mn"}
  %7: f32[4,2] = add(%1, %6)
  %8: f32[1,2] = slice(%7) {start=[2,0], step=[1,1], size=[1,2]}
  %9: f32[4,2] = contract(%2, %3) {spec="Ak,Akn->An"}
  %10: f32[1,2] = slice(%9) {start=[2,0], step=[1,1], size=[1,2]}
  %11: f32[4,2] = contract(%2, %5) {spec="mk,nk->mn"}
  %12: f32[4,4] = concat(%1, %11) {axis=1}
  %13: f32[1,4] = slice(%12) {start=[2,0], step=[1,1], size=[1,4]}
  %14: f32[1,n] = slice(%4) {start=[2,0], step=[1,1], size=[1,n]}
  %15: f32[1,2] = contract(%14, %1) {spec="mk,kn->mn"}
  return %8, %10, %13, %15
}
