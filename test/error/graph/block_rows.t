# products with blocks that are not constant
# run: opt
# exit: 3
# expect-stderr: dot_blocks: rows of blocks that are not constant
graph (%x: f32[1,32], %w: u8[2,1,18]) {
  %y: f32[1,2] = matmul_quant(%x, %w) {kind="Q4_0"}
  return %y
}
