# a value of a closed block
# run: opt --stop=none
# exit: 4
# expect-stderr: :8: %a is defined in a region that is closed
graph (%c: bool[], %x: f32[]) {
  %y: f32[] = if(%c) {
    %a: f32[] = neg(%x)
    return %a
  } else {
    return %x
  }
  %z: f32[] = exp(%a)
  return %z
}
