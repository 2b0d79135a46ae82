# No iteration: carried values as they came, an empty scan. C is refused: a size has no bound.
# engines: ref interp
# input n = i64[] {0}
# input lim = f32[] {1}
# input x = f32[2] {1, 1}
# output v = f32[2] {1, 1}
# output s = f32[0,2] {}
# output k = i64[1] {0}
graph sym u data in 0.. (%n "n": i64[], %lim "lim": f32[], %x "x": f32[2]) {
  %t: bool[] = const {true}
  %v: f32[2], %s: f32[u,2] = loop(%n, %t, %x) {scans = 1} (%i: i64[], %c: bool[], %w: f32[2]) {
    %d: f32[2] = add(%w, %w)
    %m: f32[] = reduce_max(%d) {axes = [0], keep = 0}
    %g: bool[] = lt(%m, %lim)
    return %g, %d, %d
  } sym(u)
  %k: i64[1] = dims {shape = [u], to = i64, rank = 1}
  return %v "v", %s "s", %k "k"
}
