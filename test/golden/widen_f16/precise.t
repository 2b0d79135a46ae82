# --precise rounds wherever the model does
# run: --march avx2 --precise --start=widen_f16 --stop=widen_f16
graph precise
(%1 "a": f32[4]) {
  %2: f32[4] = exp(%1)
  %3: f16[4] = cast(%2) {to=f16}
  %4: f16[4] = neg(%3)
  return %4 "y"
}

# expect
ingot 2
graph precise
(%1 "a": f32[4]) {
  %2: f32[4] = exp(%1)
  %3: f16[4] = cast(%2) {to=f16}
  %4: f32[4] = cast(%3) {to=f32}
  %5: f32[4] = neg(%4)
  %6: f16[4] = cast(%5) {to=f16}
  return %6 "y"
}
