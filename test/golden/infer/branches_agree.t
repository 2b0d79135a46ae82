# branches that give one shape need no symbol
# run: --start=infer --stop=infer
graph
(%c: bool[], %x: f32[2]) {
  %y: f32[2] = if(%c) {
    return %x
  } else {
    %n: f32[2] = neg(%x)
    return %n
  }
  %z: f32[2] = add(%y, %x)
  return %z
}

# expect
ingot 2
graph
(%1: bool[], %2: f32[2]) {
  %3: f32[2] = if(%1) {
    return %2
  } else {
    %4: f32[2] = neg(%2)
    return %4
  }
  %5: f32[2] = add(%3, %2)
  return %5
}
