# a format of blocks that there is not
# run: opt --stop=none
# exit: 4
# expect-stderr: :2: unknown block format 'Q4'
graph (%x: u8[2,18]) {
  %y: f32[64] = dequantize(%x) {kind="Q4"}
  return %y
}
