# A loop in a loop, both using values of the blocks around them.
# input x = f32[2] {1, 10}
# output y = f32[2] {13, 76}
graph (%x "x": f32[2]) {
  %t: bool[] = const {true}
  %three: i64[] = const {3}
  %two: i64[] = const {2}
  %y: f32[2] = loop(%three, %t, %x) {scans = 0} (%i: i64[], %c: bool[], %a: f32[2]) {
    %f: f32[] = cast(%i) {to = f32}
    %b: f32[2] = loop(%two, %t, %a) {scans = 0} (%j: i64[], %d: bool[], %e: f32[2]) {
      %g: f32[2] = add(%e, %f)
      %h: f32[2] = add(%g, %x)
      return %d, %h
    }
    return %c, %b
  }
  return %y "y"
}
