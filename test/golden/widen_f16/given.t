# a cast to f16 and back that the model has rounds, as it says
# run: --march avx2 --start=widen_f16 --stop=widen_f16
graph given
(%1 "a": f32[4]) {
  %2: f32[4] = exp(%1)
  %3: f16[4] = cast(%2) {to=f16}
  %4: f32[4] = cast(%3) {to=f32}
  return %4 "y"
}

# expect
ingot 2
graph given
(%1 "a": f32[4]) {
  %2: f32[4] = exp(%1)
  %3: f16[4] = cast(%2) {to=f16}
  %4: f32[4] = cast(%3) {to=f32}
  return %4 "y"
}
