# rows of a loop that may run as often as it likes, as a result: no memory is enough
# run: compile FILE --no-selftest
# exit: 3
# expect-stderr: (Loop): s has no upper bound, because the trip count of this loop is unknown; a constant trip count, a clamped one
graph sym u data in 0.. (%n "n": i64[], %x "x": f32[2]) {
  %t: bool[] = const {true}
  %v: f32[2], %s "s": f32[u,2] = loop(%n, %t, %x) {scans = 1} (%i: i64[], %c: bool[], %w: f32[2]) {
    %d: f32[2] = add(%w, %w) @("Add", "sum", 0)
    return %c, %d, %d
  } sym(u) @("Loop", "rows", 3)
  return %v "v", %s "s"
}
