# the branch taken replaces the if
# run: --start=fold --stop=fold
graph
(%x: f32[2]) {
  %c: bool[] = const {true}
  %y: f32[2] = if(%c) {
    %a: f32[2] = neg(%x)
    return %a
  } else {
    %b: f32[2] = exp(%x)
    return %b
  }
  %z: f32[2] = add(%y, %x)
  return %z
}

# expect
ingot 2
graph
(%1: f32[2]) {
  %2: bool[] = const {true}
  %3: f32[2] = neg(%1)
  %4: f32[2] = add(%3, %1)
  return %4
}
