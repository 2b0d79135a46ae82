# constants found in the inlined branch fold in the same walk
# run: --start=fold --stop=fold
graph
(%x: f32[]) {
  %c: bool[] = const {true}
  %y: f32[] = if(%c) {
    %d: bool[] = not(%c)
    %z: f32[] = if(%d) {
      %p: f32[] = exp(%x)
      return %p
    } else {
      %q: f32[] = neg(%x)
      return %q
    }
    return %z
  } else {
    return %x
  }
  return %y
}

# expect
ingot 2
graph
(%1: f32[]) {
  %2: bool[] = const {true}
  %3: bool[] = const {false}
  %4: f32[] = neg(%1)
  return %4
}
