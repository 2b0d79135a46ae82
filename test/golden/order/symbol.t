# A size that is known only after a node has run: what needs it stays behind that node.
# run: --start=order --stop=order
graph
sym k data in 0..64
(%x "x": f32[64]) {
  %b: f32[100,64] = broadcast(%x) {shape = [100, 64]}
  %c: f32[100,64] = cumsum(%b) {axis = 0, exclusive = 0, reverse = 0}
  %n: i64[1,k] = nonzero(%x) sym(k)
  %i: i64[k] = reshape(%n) {shape = [k]}
  %g: f32[100,k] = gather(%c, %i) {axis = 1}
  %s: f32[64] = reduce_sum(%c) {axes = [0], keep = 0}
  %t: f32[100] = reduce_sum(%g) {axes = [1], keep = 0}
  return %t "t", %s "s"
}

# expect
ingot 2
graph
sym k data in 0..64
(%1 "x": f32[64]) {
  %2: f32[100,64] = broadcast(%1) {shape=[100,64]}
  %3: f32[100,64] = cumsum(%2) {axis=0, exclusive=0, reverse=0}
  %4: i64[1,k] = nonzero(%1) sym(k)
  %5: i64[k] = reshape(%4) {shape=[k]}
  %6: f32[100,k] = gather(%3, %5) {axis=1}
  %7: f32[64] = reduce_sum(%3) {axes=[0], keep=0}
  %8: f32[100] = reduce_sum(%6) {axes=[1], keep=0}
  return %8 "t", %7 "s"
}
