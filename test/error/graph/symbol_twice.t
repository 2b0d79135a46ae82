# two nodes set one symbol
# run: opt --stop=none
# exit: 4
# expect-stderr: is set twice
graph
sym u data in 0..4
(%x: f32[4]) {
  %a: i64[1,u] = nonzero(%x) sym(u)
  %b: i64[1,u] = nonzero(%x) sym(u)
  return %a, %b
}
