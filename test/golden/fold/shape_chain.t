# integers behind shapes
# run: --start=fold --stop=fold
graph
(%x: f32[6]) {
  %s: i64[3] = const {2, 3, 4}
  %i: i64[2] = const {2, 0}
  %g: i64[2] = gather(%s, %i) {axis=0}
  %c: i64[5] = concat(%g, %s) {axis=0}
  %p: i64[1] = reduce_prod(%c) {axes=[0], keep=1}
  return %c, %p
}

# expect
ingot 2
graph
(%1: f32[6]) {
  %2: i64[3] = const {2, 3, 4}
  %3: i64[2] = const {2, 0}
  %4: i64[2] = const {4, 2}
  %5: i64[5] = const {4, 2, 2, 3, 4}
  %6: i64[1] = const {192}
  return %5, %6
}
