# a loop that never runs gives its initial values and no rows
# run: --start=fold --stop=fold
graph
sym u0 data in 0..0
(%x: f32[3], %go: bool[]) {
  %n: i64[] = const {0}
  %y: f32[3], %s: f32[u0,3] = loop(%n, %go, %x) {scans=1} (%i: i64[], %g: bool[], %v: f32[3]) {
    %w: f32[3] = add(%v, %v)
    return %g, %w, %v
  } sym(u0)
  return %y, %s
}

# expect
ingot 2
graph
(%1: f32[3], %2: bool[]) {
  %3: i64[] = const {0}
  %4: f32[0,3] = const {}
  return %1, %4
}
