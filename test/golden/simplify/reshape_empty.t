# a reshape to nothing of what may have elements stays, with what is made of it: it is told where it is lowered
# run: --start=simplify --stop=simplify
graph
sym n in 0..5
(%x: f32[n,6], %z: f32[0,6]) {
  %y: f32[4,0,9] = reshape(%x) {shape = [4,0,9]}
  %t: f32[9,0,4] = transpose(%y) {perm = [2,1,0]}
  %u: f32[9,0,4] = neg(%t)
  %a: f32[4,0,9] = reshape(%z) {shape = [4,0,9]}
  return %u, %a
}

# expect
ingot 2
graph
sym n in 0..5
(%1: f32[n,6], %2: f32[0,6]) {
  %3: f32[4,0,9] = reshape(%1) {shape=[4,0,9]}
  %4: f32[9,0,4] = transpose(%3) {perm=[2,1,0]}
  %5: f32[9,0,4] = neg(%4)
  %6: f32[4,0,9] = const {}
  return %5, %6
}
