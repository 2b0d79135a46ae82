# a size that only the taken branch decides becomes known everywhere
# run: --start=fold --stop=fold
graph
sym u0 data in 2..3
(%x: f32[2], %w: f32[3]) {
  %c: bool[] = const {false}
  %y: f32[u0] = if(%c) {
    return %x
  } else {
    return %w
  } sym(u0)
  %d: i64[1] = dims {shape=[2*u0], to=i64, rank=1}
  %r: f32[u0,1] = reshape(%y) {shape=[u0,1]}
  return %r, %d
}

# expect
ingot 2
graph
(%1: f32[2], %2: f32[3]) {
  %3: bool[] = const {false}
  %4: i64[1] = const {6}
  %5: f32[3,1] = reshape(%2) {shape=[3,1]}
  return %5, %4
}
