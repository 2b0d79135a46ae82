# a program has no complex buffers, even if nothing reads them
# run: opt
# exit: 3
# expect-stderr: input 0 is c128, which cannot be lowered
# expect-stderr: output 1 is c64, which cannot be lowered
graph (%x "x": c128[2], %y "y": f32[2], %z "z": c64[2]) {
  %a: f32[2] = neg(%y)
  return %a "a", %z "z"
}
