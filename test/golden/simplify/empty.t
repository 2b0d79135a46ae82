# results without elements, pads of nothing, updates of nothing
# run: --start=simplify --stop=simplify
graph
sym n in 1..
(%x: f32[n,3], %v: f32[], %e: f32[0,3], %i: i64[0,1], %d: f32[4,3]) {
  %a: f32[n,3] = pad(%x, %v) {lo=[0,0], hi=[0,0], interior=[0,0]}
  %b: f32[0,3] = exp(%e)
  %c: f32[4,3] = scatter_nd(%d, %i, %b) {reduce="add"}
  return %a, %b, %c
}

# expect
ingot 2
graph
sym n in 1..
(%1: f32[n,3], %2: f32[], %3: f32[0,3], %4: i64[0,1], %5: f32[4,3]) {
  %6: f32[0,3] = const {}
  return %1, %6, %5
}
