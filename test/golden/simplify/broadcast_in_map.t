# a broadcast that the operator does anyway
# run: --start=simplify --stop=simplify
graph
sym n in 1..
(%x: f32[n,4], %y: f32[4], %z: f32[1]) {
  %a: f32[n,4] = broadcast(%y) {shape=[n,4]}
  %b: f32[n,4] = add(%x, %a)
  %c: f32[n,4] = broadcast(%z) {shape=[n,4]}
  %d: f32[n,4] = mul(%c, %a)
  return %b, %d
}

# expect
ingot 2
graph
sym n in 1..
(%1: f32[n,4], %2: f32[4], %3: f32[1]) {
  %4: f32[n,4] = broadcast(%2) {shape=[n,4]}
  %5: f32[n,4] = add(%1, %2)
  %6: f32[n,4] = broadcast(%3) {shape=[n,4]}
  %7: f32[n,4] = mul(%3, %4)
  return %5, %7
}
