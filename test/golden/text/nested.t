# blocks in blocks, values of the blocks around them
# run: --stop=none
graph nest
sym u1 data in 0..
(%n: i64[], %c: bool[], %x: f32[4]) {
  %y: f32[4], %s: f32[u1,4] = loop(%n, %c, %x) {scans=1} (%i: i64[], %go: bool[], %v: f32[4]) {
    %w: f32[4] = if(%go) {
      %a: f32[4] = add(%v, %x)
      return %a
    } else {
      %b: f32[4], %b2: i64[] = if(%c) {
        return %v, %n
      } else {
        return %x, %i
      }
      return %b
    }
    return %go, %w, %v
  } sym(u1)
  return %y, %s
}

# expect
ingot 2
graph nest
sym u1 data in 0..
(%1: i64[], %2: bool[], %3: f32[4]) {
  %4: f32[4], %5: f32[u1,4] = loop(%1, %2, %3) {scans=1} (%6: i64[], %7: bool[], %8: f32[4]) {
    %9: f32[4] = if(%7) {
      %10: f32[4] = add(%8, %3)
      return %10
    } else {
      %11: f32[4], %12: i64[] = if(%2) {
        return %8, %1
      } else {
        return %3, %6
      }
      return %11
    }
    return %7, %9, %8
  } sym(u1)
  return %4, %5
}
