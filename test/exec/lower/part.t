# parts of results, on every engine: rows of a loop forwards and backwards, a row behind a norm and two contractions
# input x = f32[3,2] {1, 2, -3, 4, 5, -6}
# output last = f32[1,4] {7.46875, -17.125, 8, -9.5}
# output row = f32[2,1] {-6.625, -1.65625}
# output mid = f32[1,2,2] {0, 0, 43.890625, 1.265625}
graph
(%x "x": f32[3,2]) {
  %three: i64[] = const {3}
  %on: bool[] = const {true}
  %zero: f32[1,2] = const {0, 0}
  %w: f32[2,2] = const {0.5, -1, 2, 0.25}
  %u: f32[2,2] = const {1, 0.5, -0.5, 2}
  %b: f32[2] = const {0.125, -4}
  %xw: f32[3,2] = contract(%x, %w) {spec="mk,kn->mn"}
  %xb: f32[3,2] = add(%xw, %b)
  %h: f32[1,2], %hs: f32[3,1,2] = loop(%three, %on, %zero) {scans=1} (%i: i64[], %c: bool[], %was: f32[1,2]) {
    %r: f32[2] = gather(%xb, %i) {axis=0}
    %p: f32[1,2] = contract(%was, %u) {spec="mk,kn->mn"}
    %q: f32[1,2] = add(%p, %r)
    return %c, %q, %q
  }
  %rev: f32[3,2] = slice(%x) {start=[2,0], step=[-1,1], size=[3,2]}
  %rw: f32[3,2] = contract(%rev, %u) {spec="mk,kn->mn"}
  %k: f32[1,2], %ks: f32[3,1,2] = loop(%three, %on, %zero) {scans=1} (%j: i64[], %d: bool[], %old: f32[1,2]) {
    %s: f32[2] = gather(%rw, %j) {axis=0}
    %t: f32[1,2] = contract(%old, %w) {spec="mk,kn->mn"}
    %v: f32[1,2] = sub(%s, %t)
    return %d, %v, %v
  }
  %kb: f32[3,1,2] = slice(%ks) {start=[2,0,0], step=[-1,1,1], size=[3,1,2]}
  %both: f32[3,1,4] = concat(%hs, %kb) {axis=2}
  %flat: f32[3,4] = reshape(%both) {shape=[3,4]}
  %last: f32[1,4] = slice(%flat) {start=[2,0], step=[1,1], size=[1,4]}
  %m: f32[3,1] = reduce_max(%xb) {axes=[1], keep=1}
  %n: f32[3,2] = sub(%xb, %m)
  %y: f32[3,2] = contract(%n, %w) {spec="mk,kn->mn"}
  %z: f32[3,2] = add(%y, %xb)
  %zt: f32[2,3] = transpose(%z) {perm=[1,0]}
  %row: f32[2,1] = slice(%zt) {start=[0,1], step=[1,1], size=[2,1]}
  %a: f32[4,3,2] = broadcast(%n) {shape=[4,3,2]}
  %e: f32[4,3,2] = mul(%a, %a)
  %f: f32[4,2,3] = transpose(%e) {perm=[0,2,1]}
  %g: f32[4,6] = reshape(%f) {shape=[4,6]}
  %o: f32[1,6] = slice(%g) {start=[2,0], step=[1,1], size=[1,6]}
  %o3: f32[1,2,3] = reshape(%o) {shape=[1,2,3]}
  %mid: f32[1,2,2] = slice(%o3) {start=[0,0,1], step=[1,1,1], size=[1,2,2]}
  return %last "last", %row "row", %mid "mid"
}
