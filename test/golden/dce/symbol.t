# a node stays if something mentions the size it sets
# run: --start=dce --stop=dce
graph
sym u0 data in 0..4
sym u1 data in 0..4
(%x: f32[4], %y: f32[4]) {
  %a: i64[1,u0] = nonzero(%x) sym(u0)
  %b: i64[1,u1] = nonzero(%y) sym(u1)
  %d: i64[1] = dims {shape=[u0+1], to=i64, rank=1}
  return %d
}

# expect
ingot 2
graph
sym u0 data in 0..4
(%1: f32[4], %2: f32[4]) {
  %3: i64[1,u0] = nonzero(%1) sym(u0)
  %4: i64[1] = dims {shape=[u0+1], to=i64, rank=1}
  return %4
}
