# The condition ends the loop; the scan has as many rows as there were iterations. C is refused: a size has no bound.
# engines: ref interp
# input n = i64[] {100}
# input lim = f32[] {20}
# input x = f32[2] {1, 1}
# output v = f32[2] {32, 32}
# output s = f32[5,2] {2, 2, 4, 4, 8, 8, 16, 16, 32, 32}
# output k = i64[1] {5}
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
