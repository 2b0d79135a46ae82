# a layer that was built on f32 ends with a cast, which goes; one of another node of the model stays
# run: --march avx2 --start=widen_f16 --stop=widen_f16
graph layer
(%1 "x": f32[4]) {
  %2: f32[4] = exp(%1) @("Softplus", "a", 0)
  %3: f16[4] = cast(%2) {to=f16, layer=1} @("Softplus", "a", 0)
  %4: f32[4] = cast(%3) {to=f32} @("Neg", "b", 1)
  %5: f32[4] = neg(%4) @("Neg", "b", 1)
  %6: f16[4] = cast(%5) {to=f16} @("Cast", "c", 2)
  %7: f32[4] = cast(%6) {to=f32} @("Cast", "d", 3)
  return %7 "y"
}

# expect
ingot 2
graph layer
(%1 "x": f32[4]) {
  %2: f32[4] = exp(%1) @("Softplus", "a", 0)
  %3: f32[4] = neg(%2) @("Neg", "b", 1)
  %4: f16[4] = cast(%3) {to=f16} @("Cast", "c", 2)
  %5: f32[4] = cast(%4) {to=f32} @("Cast", "d", 3)
  return %5 "y"
}
