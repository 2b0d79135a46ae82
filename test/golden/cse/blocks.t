# a block sees what is computed around it, but not its sibling
# run: --start=cse --stop=cse
graph
(%c: bool[], %x: f32[]) {
  %a: f32[] = exp(%x)
  %y: f32[] = if(%c) {
    %b: f32[] = exp(%x)
    %d: f32[] = neg(%b)
    return %d
  } else {
    %e: f32[] = neg(%a)
    return %e
  }
  %f: f32[] = neg(%a)
  return %y, %f
}

# expect
ingot 2
graph
(%1: bool[], %2: f32[]) {
  %3: f32[] = exp(%2)
  %4: f32[] = if(%1) {
    %5: f32[] = neg(%3)
    return %5
  } else {
    %6: f32[] = neg(%3)
    return %6
  }
  %7: f32[] = neg(%3)
  return %4, %7
}
