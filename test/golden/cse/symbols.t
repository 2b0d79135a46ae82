# two searches for the same thing set one symbol
# run: --start=cse --stop=cse
graph
sym u0 data in 0..4
sym u1 data in 0..4
(%x: f32[4]) {
  %a: i64[1,u0] = nonzero(%x) sym(u0)
  %b: i64[1,u1] = nonzero(%x) sym(u1)
  %c: i64[u1] = reshape(%b) {shape=[u1]}
  %d: i64[u0] = reshape(%a) {shape=[u0]}
  return %c, %d
}

# expect
ingot 2
graph
sym u0 data in 0..4
(%1: f32[4]) {
  %2: i64[1,u0] = nonzero(%1) sym(u0)
  %3: i64[u0] = reshape(%2) {shape=[u0]}
  return %3, %3
}
