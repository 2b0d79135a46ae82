# Operands of different ranks, aligned from the right; a symbolic extent.
# input a = f32[2,1,3] {1, 2, 3, 4, 5, 6}
# input b = f32[2,1] {10, 20}
# input c = f32[] {100}
# output y = f32[2,2,3] {11, 12, 13, 21, 22, 23, 14, 15, 16, 24, 25, 26}
# output z = f32[2,1,3] {101, 102, 103, 104, 105, 106}
graph sym n in 1..4 (%a "a": f32[n,1,3], %b "b": f32[2,1], %c "c": f32[]) {
  %y: f32[n,2,3] = add(%a, %b)
  %z: f32[n,1,3] = add(%a, %c)
  return %y "y", %z "z"
}
