# views are computed in place by any number of users, but not in front of a reshape
# run: --start=fuse --stop=fuse
graph
(%x: f32[4,3], %y: f32[3,4]) {
  %t: f32[3,4] = transpose(%x) {perm=[1,0]}
  %a: f32[3,4] = add(%t, %y)
  %b: f32[3,4] = mul(%t, %a)
  %s: f32[3,2] = slice(%t) {start=[0,1], step=[1,1], size=[3,2]}
  %n: f32[3,2] = neg(%s)
  %u: f32[4,3] = transpose(%y) {perm=[1,0]}
  %r: f32[12] = reshape(%u) {shape=[12]}
  return %b, %n, %r
}

# expect
ingot 2
graph
(%1: f32[4,3], %2: f32[3,4]) {
  %3: f32[3,4] inline = transpose(%1) {perm=[1,0]}
  %4: f32[3,4] inline = add(%3, %2)
  %5: f32[3,4] = mul(%3, %4)
  %6: f32[3,2] inline = slice(%3) {start=[0,1], step=[1,1], size=[3,2]}
  %7: f32[3,2] = neg(%6)
  %8: f32[4,3] = transpose(%2) {perm=[1,0]}
  %9: f32[12] = reshape(%8) {shape=[12]}
  return %5, %7, %9
}
