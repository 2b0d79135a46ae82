# what half leaves, cse and dce take away: two more runs of those, which can be left out
# run: --march avx2 --start=widen_f16 --stop=widen_f16 --skip=cse,dce
graph left
(%1 "x": f16[2,3]) {
  %2: f16[3,3] = const {1, 2, 3, 4, 5, 6, 7, 8, 9}
  %3: f16[2,3] = contract(%1, %2) {spec="mk,kn->mn"}
  %4: f16[2,3] = exp(%3)
  %5: f16[2,3] = add(%4, %1)
  return %5 "y"
}

# expect
ingot 2
graph left
(%1 "x": f16[2,3]) {
  %2: f16[3,3] = const {1, 2, 3, 4, 5, 6, 7, 8, 9}
  %3: f32[2,3] = cast(%1) {to=f32}
  %4: f32[3,3] = const {1, 2, 3, 4, 5, 6, 7, 8, 9}
  %5: f32[2,3] = contract(%3, %4) {spec="mk,kn->mn"}
  %6: f16[2,3] = cast(%5) {to=f16}
  %7: f32[2,3] = exp(%5)
  %8: f16[2,3] = cast(%7) {to=f16}
  %9: f32[2,3] = cast(%1) {to=f32}
  %10: f32[2,3] = add(%7, %9)
  %11: f16[2,3] = cast(%10) {to=f16}
  return %11 "y"
}
