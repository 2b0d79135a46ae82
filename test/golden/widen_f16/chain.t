# two products: what is between them is never rounded, inputs and results are halves
# run: --march avx2 --start=widen_f16 --stop=widen_f16
graph chain
(%1 "x": f16[2,3]) {
  %2: f16[3,3] = const {1, 2, 3, 4, 5, 6, 7, 8, 9}
  %3: f16[2,3] = contract(%1, %2) {spec="mk,kn->mn"}
  %4: f16[2,3] = exp(%3)
  %5: f16[2,3] = add(%4, %1)
  return %5 "y"
}

# expect
ingot 2
graph chain
(%1 "x": f16[2,3]) {
  %2: f32[2,3] = cast(%1) {to=f32}
  %3: f32[3,3] = const {1, 2, 3, 4, 5, 6, 7, 8, 9}
  %4: f32[2,3] = contract(%2, %3) {spec="mk,kn->mn"}
  %5: f32[2,3] = exp(%4)
  %6: f32[2,3] = add(%5, %2)
  %7: f16[2,3] = cast(%6) {to=f16}
  return %7 "y"
}
