# Axes of extent 1 repeat, new axes appear in front; to a symbolic extent.
# input x = f32[2,1] {3, 4}
# input s = bool[] {true}
# input y = f32[3] {0}
# output a = f32[2,2,3] {3, 3, 3, 4, 4, 4, 3, 3, 3, 4, 4, 4}
# output b = bool[3] {true, true, true}
graph sym n in 1..4 (%x "x": f32[2,1], %s "s": bool[], %y "y": f32[n]) {
  %a: f32[2,2,3] = broadcast(%x) {shape = [2,2,3]}
  %b: bool[n] = broadcast(%s) {shape = [n]}
  return %a "a", %b "b"
}
