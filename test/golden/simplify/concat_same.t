# one value repeated along an axis of extent 1 is a broadcast; along a longer axis it is not
# run: --start=simplify --stop=simplify
graph
(%x: f32[2,1], %y: f32[2,2]) {
  %a: f32[2,3] = concat(%x, %x, %x) {axis=1}
  %b: f32[2,4] = concat(%y, %y) {axis=1}
  return %a, %b
}

# expect
ingot 2
graph
(%1: f32[2,1], %2: f32[2,2]) {
  %3: f32[2,3] = broadcast(%1) {shape=[2,3]}
  %4: f32[2,4] = concat(%2, %2) {axis=1}
  return %3, %4
}
