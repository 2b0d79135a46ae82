# chains of views become one
# run: --start=simplify --stop=simplify
graph
sym n in 1..
(%x: f32[n,2,3]) {
  %a: f32[n,6] = reshape(%x) {shape=[n,6]}
  %b: f32[6*n] = reshape(%a) {shape=[6*n]}
  %c: f32[3,2,n] = transpose(%x) {perm=[2,1,0]}
  %d: f32[n,3,2] = transpose(%c) {perm=[2,0,1]}
  %e: f32[n,2,3] = transpose(%d) {perm=[0,2,1]}
  %f: f32[n,1,6] = reshape(%a) {shape=[n,1,6]}
  %g: f32[1,n,6] = transpose(%f) {perm=[1,0,2]}
  %h: f32[n,2,3] = reshape(%b) {shape=[n,2,3]}
  %i: f32[1,n,2,3] = broadcast(%x) {shape=[1,n,2,3]}
  %j: f32[5,n,2,3] = broadcast(%i) {shape=[5,n,2,3]}
  return %b, %d, %e, %g, %h, %j
}

# expect
ingot 2
graph
sym n in 1..
(%1: f32[n,2,3]) {
  %2: f32[n,6] = reshape(%1) {shape=[n,6]}
  %3: f32[6*n] = reshape(%1) {shape=[6*n]}
  %4: f32[3,2,n] = transpose(%1) {perm=[2,1,0]}
  %5: f32[n,3,2] = transpose(%1) {perm=[0,2,1]}
  %6: f32[n,1,6] = reshape(%1) {shape=[n,1,6]}
  %7: f32[1,n,6] = reshape(%1) {shape=[1,n,6]}
  %8: f32[1,n,2,3] = broadcast(%1) {shape=[1,n,2,3]}
  %9: f32[5,n,2,3] = broadcast(%1) {shape=[5,n,2,3]}
  return %3, %5, %1, %7, %1, %9
}
