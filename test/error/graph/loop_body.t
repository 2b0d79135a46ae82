# a body that does not carry what the loop does
# run: opt --stop=none
# exit: 4
# expect-stderr: carried value 0
graph (%n: i64[], %c: bool[], %x: f32[2]) {
  %y: f32[2] = loop(%n, %c, %x) {scans=0} (%i: i64[], %g: bool[], %v: f32[3]) {
    return %g, %v
  }
  return %y
}
