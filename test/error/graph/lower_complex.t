# complex numbers are refused before anything is built of what they lead to, and all of them
# run: opt
# exit: 3
# expect-stderr: cast on c64 cannot be lowered
# expect-stderr: cast on c128 cannot be lowered
graph (%x "x": c64[2], %z "z": c128[2], %y "y": f32[2]) {
  %a: f32[2] = cast(%x) {to = f32}
  %b: f32[2] = mul(%y, %a)
  %c: f32[2] = cast(%z) {to = f32}
  return %b "b", %c "c"
}
