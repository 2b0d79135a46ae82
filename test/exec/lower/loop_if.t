# An if inside a loop, with a size that depends on data in each round, and a scan whose length does.
# input x = f32[4] {1, 0, 2, 3}
# input stop = i64[] {2}
# output s = f32[] {7}
# output c = f32[2] {1, 7}
graph sym u data in 0..5 sym v data in 0..4 (%x "x": f32[4], %stop "stop": i64[]) {
  %n: i64[] = const {5}
  %t: bool[] = const {true}
  %z: f32[] = const {0}
  %one: i64[] = const {1}
  %s: f32[], %c: f32[u] = loop(%n, %t, %z) {scans = 1} (%i: i64[], %g: bool[], %p: f32[]) {
    %odd: bool[] = eq(%i, %one)
    %r: f32[] = if(%odd) {
      %nz: i64[1,v] = nonzero(%x) sym(v)
      %f: i64[v,1] = transpose(%nz) {perm = [1,0]}
      %y: f32[v] = gather_nd(%x, %f) {batch = 0}
      %sum: f32[] = reduce_sum(%y) {axes = [0], keep = 0}
      return %sum
    } else {
      %e: f32[1] = slice(%x) {start = [0], step = [1], size = [1]}
      %q: f32[] = reshape(%e) {shape = []}
      return %q
    }
    %w: f32[] = add(%p, %r)
    %j: i64[] = add(%i, %one)
    %more: bool[] = lt(%j, %stop)
    return %more, %w, %w
  } sym(u)
  return %s "s", %c "c"
}
