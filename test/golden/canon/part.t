# only the row that is read is computed: the slice goes up through views, sums, maps and contractions
# run: --start=canon --stop=canon
graph
(%x: f32[4,2]) {
  %w: f32[2,2] = const {1, 2, 3, 4}
  %v: f32[2,3] = const {1, 2, 3, 4, 5, 6}
  %a: f32[4,2] = contract(%x, %w) {spec="mk,kn->mn"}
  %r: f32[4,2] = add(%x, %a)
  %m: f32[4,1] = reduce_max(%r) {axes=[1], keep=1}
  %d: f32[4,2] = sub(%r, %m)
  %y: f32[4,3] = contract(%d, %v) {spec="mk,kn->mn"}
  %t: f32[3,4] = transpose(%y) {perm=[1,0]}
  %f: f32[1,3,4] = reshape(%t) {shape=[1,3,4]}
  %s: f32[1,3,1] = slice(%f) {start=[0,0,2], step=[1,1,1], size=[1,3,1]}
  return %s
}

# expect
ingot 2
graph
(%1: f32[4,2]) {
  %2: f32[2,2] = const {1, 2, 3, 4}
  %3: f32[2,3] = const {1, 2, 3, 4, 5, 6}
  %4: f32[1,2] = slice(%1) {start=[2,0], step=[1,1], size=[1,2]}
  %5: f32[1,2] = contract(%4, %2) {spec="mk,kn->mn"}
  %6: f32[1,2] = add(%4, %5)
  %7: f32[1,1] = reduce_max(%6) {axes=[1], keep=1}
  %8: f32[1,2] = sub(%6, %7)
  %9: f32[3,1] = contract(%8, %3) {spec="mk,kn->nm"}
  %10: f32[1,3,1] = reshape(%9) {shape=[1,3,1]}
  return %10
}
