# reductions over nothing, or over axes of extent 1
# run: --start=simplify --stop=simplify
graph
(%x: f32[2,1], %i: i32[2,1]) {
  %a: f32[2,1] = reduce_sum(%x) {axes=[], keep=0}
  %b: f32[2] = reduce_max(%x) {axes=[1], keep=0}
  %c: f32[2] = reduce_sum(%x) {axes=[1], keep=0}
  %d: i32[2,1] = reduce_sum(%i) {axes=[1], keep=1}
  %e: f32[1] = reduce_prod(%x) {axes=[0], keep=0}
  return %a, %b, %c, %d, %e
}

# expect
ingot 2
graph
(%1: f32[2,1], %2: i32[2,1]) {
  %3: f32[2,1] = reduce_sum(%1) {axes=[], keep=0}
  %4: f32[2] = reshape(%1) {shape=[2]}
  %5: f32[2] = reduce_sum(%1) {axes=[1], keep=0}
  %6: f32[1] = reduce_prod(%1) {axes=[0], keep=0}
  return %3, %4, %5, %2, %6
}
