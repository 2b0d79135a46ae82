# a cache that grows needs a bound
# run: opt
# exit: 3
# expect-stderr: state 'past' grows without bound; set one with --max-shapes
graph grow
sym p in 0..
(%1 "past": f32[p], %2 "x": f32[1]) {
  %3: f32[p+1] = concat(%1, %2) {axis=0}
  return %3 "present" next %1
}
