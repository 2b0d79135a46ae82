# boxes that are given in no way there is
# run: opt --stop=none
# exit: 4
# expect-stderr: nms: expected kind edges, corners or centre
graph (%s: f32[1,1,3], %b: f32[1,3,4], %l: f32[], %m: i64[]) {
  %y: i64[1,1,3] = nms(%s, %b, %l, %l, %m) {kind="middle", k=[3]}
  return %y
}
