# the largest of no elements is the limit of the type, so its use as an index is tested
# run: --start=simplify --stop=simplify
graph
(%x: f32[10]) {
  %e: i32[0] = const {}
  %m: i32[] = reduce_max(%e) {axes=[0], keep=0}
  %b: i32[] = check_index(%m) {size=[10]}
  %y: f32[] = gather(%x, %b) {axis=0}
  return %y
}

# expect
ingot 2
graph
(%1: f32[10]) {
  %2: i32[0] = const {}
  %3: i32[] = reduce_max(%2) {axes=[0], keep=0}
  %4: i32[] = check_index(%3) {size=[10]}
  %5: f32[] = gather(%1, %4) {axis=0}
  return %5
}
