# a cast to f16 and back that the model has rounds, as it says
# run: --march avx2 --start=half --stop=half
graph given
(%1 "a": f32[4]) {
  %2: f32[4] = exp(%1)
  %3: f16[4] = cast(%2) {to=f16}
  %4: f32[4] = cast(%3) {to=f32}
  return %4 "y"
}

# expect
graph given
(%1 "a": f32[4]) {
  %2: f32[4] = exp(%1)
  %3: f16[4] = cast(%2) {to=f16}
  %4: f32[4] = cast(%3) {to=f32}
  return %4 "y"
}
