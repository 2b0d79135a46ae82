# extents that can never be the same are refused when it is compiled
# run: opt
# exit: 4
# expect-stderr: add: 5 differs from n, which is at most 3: every run would fail
graph
sym n in 2..3
(%x "x": f32[n], %y "y": f32[5]) {
  %z: f32[5] = add(%x, %y)
  return %z "z"
}
