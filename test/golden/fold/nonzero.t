# coordinates of a constant; their number becomes known
# run: --start=fold --stop=fold
graph
sym u0 data in 0..4
(%x: f32[4]) {
  %m: bool[4] = const {true, false, true, false}
  %i: i64[1,u0] = nonzero(%m) sym(u0)
  %t: i64[u0,1] = transpose(%i) {perm=[1,0]}
  %y: f32[u0] = gather_nd(%x, %t) {batch=0}
  return %y
}

# expect
ingot 2
graph
(%1: f32[4]) {
  %2: bool[4] = const {true, false, true, false}
  %3: i64[1,2] = const {0, 2}
  %4: i64[2,1] = const {0, 2}
  %5: f32[2] = gather_nd(%1, %4) {batch=0}
  return %5
}
