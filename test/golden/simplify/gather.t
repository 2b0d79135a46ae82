# constant runs of indices are slices
# run: --start=simplify --stop=simplify
graph
sym n in 2..
(%x: f32[4,3], %s: f32[n,3]) {
  %i: i64[4] = const {0, 1, 2, 3}
  %j: i64[2] = const {-1, 1}
  %k: i64[] = const {-2}
  %l: i64[3] = const {0, 2, 3}
  %m: i64[] = const {1}
  %a: f32[4,3] = gather(%x, %i) {axis=0}
  %b: f32[2,3] = gather(%x, %j) {axis=0}
  %c: f32[3] = gather(%x, %k) {axis=0}
  %d: f32[3,3] = gather(%x, %l) {axis=0}
  %e: f32[3] = gather(%s, %m) {axis=0}
  %f: f32[3] = gather(%s, %k) {axis=0}
  return %a, %b, %c, %d, %e, %f
}

# expect
ingot 2
graph
sym n in 2..
(%1: f32[4,3], %2: f32[n,3]) {
  %3: i64[4] = const {0, 1, 2, 3}
  %4: i64[2] = const {-1, 1}
  %5: i64[] = const {-2}
  %6: i64[3] = const {0, 2, 3}
  %7: i64[] = const {1}
  %8: f32[2,3] = slice(%1) {start=[3,0], step=[-2,1], size=[2,3]}
  %9: f32[1,3] = slice(%1) {start=[2,0], step=[1,1], size=[1,3]}
  %10: f32[3] = reshape(%9) {shape=[3]}
  %11: f32[3,3] = gather(%1, %6) {axis=0}
  %12: f32[1,3] = slice(%2) {start=[1,0], step=[1,1], size=[1,3]}
  %13: f32[3] = reshape(%12) {shape=[3]}
  %14: f32[3] = gather(%2, %5) {axis=0}
  return %1, %8, %10, %11, %13, %14
}
