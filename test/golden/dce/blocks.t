# dead nodes in blocks, dead control nodes
# run: --start=dce --stop=dce
graph
(%c: bool[], %n: i64[], %x: f32[]) {
  %a: f32[] = exp(%x)
  %b: f32[] = log(%x)
  %y: f32[] = if(%c) {
    %p: f32[] = neg(%a)
    %q: f32[] = neg(%b)
    return %p
  } else {
    return %x
  }
  %z: f32[] = if(%c) {
    %r: f32[] = neg(%b)
    return %r
  } else {
    return %b
  }
  %l: f32[], %m: f32[] = loop(%n, %c, %x, %x) {scans=0} (%i: i64[], %g: bool[], %s: f32[], %t: f32[]) {
    %u: f32[] = add(%s, %a)
    %v: f32[] = mul(%s, %s)
    return %g, %u, %t
  }
  return %y, %l
}

# expect
ingot 2
graph
(%1: bool[], %2: i64[], %3: f32[]) {
  %4: f32[] = exp(%3)
  %5: f32[] = if(%1) {
    %6: f32[] = neg(%4)
    return %6
  } else {
    return %3
  }
  %7: f32[], %8: f32[] = loop(%2, %1, %3, %3) {scans=0} (%9: i64[], %10: bool[], %11: f32[], %12: f32[]) {
    %13: f32[] = add(%11, %4)
    return %10, %13, %12
  }
  return %5, %7
}
