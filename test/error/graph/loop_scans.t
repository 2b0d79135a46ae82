# more scans than the body gives
# run: opt --stop=none
# exit: 4
# expect-stderr: scans is 9
graph (%n: i64[], %c: bool[], %x: f32[2]) {
  %y: f32[2] = loop(%n, %c, %x) {scans=9} (%i: i64[], %g: bool[], %v: f32[2]) {
    return %g, %v
  }
  return %y
}
