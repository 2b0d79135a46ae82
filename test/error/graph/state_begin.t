# a cache begins empty
# run: opt --stop=none
# exit: 4
# expect-stderr: state 'past' starts empty, but p is at least 1
graph grow
sym p in 1..8
(%1 "past": f32[p], %2 "x": f32[1]) {
  %3: f32[p+1] = concat(%1, %2) {axis=0}
  return %3 "present" next %1
}
