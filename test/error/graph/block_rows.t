# products with blocks that are not constant
# run: opt
# exit: 3
# expect-stderr: matmul_quant: the weights are not constant, expected a constant
graph (%x: f32[1,32], %w: u8[2,1,18]) {
  %y: f32[1,2] = matmul_quant(%x, %w) {kind="Q4_0"}
  return %y
}
