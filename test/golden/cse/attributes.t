# attributes make a difference
# run: --start=cse --stop=cse
graph
(%x: f32[2,2]) {
  %a: f32[2] = reduce_sum(%x) {axes=[0], keep=0}
  %b: f32[2] = reduce_sum(%x) {axes=[1], keep=0}
  %c: f32[2] = reduce_sum(%x) {axes=[0], keep=0}
  %d: f32[2,2] = transpose(%x) {perm=[1,0]}
  %e: f32[2,2] = transpose(%x) {perm=[1,0]}
  return %a, %b, %c, %d, %e
}

# expect
ingot 2
graph
(%1: f32[2,2]) {
  %2: f32[2] = reduce_sum(%1) {axes=[0], keep=0}
  %3: f32[2] = reduce_sum(%1) {axes=[1], keep=0}
  %4: f32[2,2] = transpose(%1) {perm=[1,0]}
  return %2, %3, %2, %4, %4
}
