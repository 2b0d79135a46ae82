# what is computed is moved as f32, and joined with halves that are widened for it
# run: --march avx2 --start=widen_f16 --stop=widen_f16
graph moved
(%1 "a": bf16[2,4], %2 "b": bf16[2,3]) {
  %3: bf16[2,4] = sqrt(%1)
  %4: bf16[2,7] = concat(%3, %2) {axis=1}
  %5: bf16[7,2] = transpose(%4) {perm=[1,0]}
  %6: bf16[7,1] = reduce_sum(%5) {axes=[1], keep=1}
  return %6 "y"
}

# expect
ingot 2
graph moved
(%1 "a": bf16[2,4], %2 "b": bf16[2,3]) {
  %3: f32[2,4] = cast(%1) {to=f32}
  %4: f32[2,4] = sqrt(%3)
  %5: f32[2,3] = cast(%2) {to=f32}
  %6: f32[2,7] = concat(%4, %5) {axis=1}
  %7: f32[7,2] = transpose(%6) {perm=[1,0]}
  %8: f32[7,1] = reduce_sum(%7) {axes=[1], keep=1}
  %9: bf16[7,1] = cast(%8) {to=bf16}
  return %9 "y"
}
