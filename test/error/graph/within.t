# a constant index that is out of range is refused when it is used, not before
# run: run FILE
# exit: 4
# expect-stderr: an index is out of range: the extent is 3
graph
(%x: f32[3]) {
  %i: i64[2] = const {0, -4}
  %j: i64[2] = check_index(%i) {size=[3]}
  %y: f32[2] = gather(%x, %j) {axis=0}
  return %y
}
