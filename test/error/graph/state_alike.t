# states that share a symbol grow alike
# run: opt --stop=none
# exit: 4
# expect-stderr: states 'a' and 'b' share a symbol but grow differently
graph grow
sym p in 0..8
(%1 "a": f32[p], %2 "b": f32[p], %3 "x": f32[1]) {
  %4: f32[p+1] = concat(%1, %3) {axis=0}
  %5: f32[p+2] = concat(%2, %3, %3) {axis=0}
  return %4 "a2" next %1, %5 "b2" next %2
}
