# blocks of another size
# run: opt --stop=none
# exit: 4
# expect-stderr: dequantize: blocks of Q4_0 are u8[.., n, 18], found u8[2,20]
graph (%x: u8[2,20]) {
  %y: f32[64] = dequantize(%x) {kind="Q4_0"}
  return %y
}
