# bytes come with factors and sums
# run: opt --stop=none
# exit: 4
# expect-stderr: matmul_quant: operand 3 is i32[1,2], expected i32 with rows of 1 elements
graph (%x: i8[1,32], %w: u8[2,1,18], %d: f32[1,1], %s: i32[1,2]) {
  %y: f32[1,2] = matmul_quant(%x, %w, %d, %s) {kind="Q4_0"}
  return %y
}
