# what no extent within the bounds can meet is refused when it is compiled
# run: opt
# exit: 4
# expect-stderr: topk: 5 exceeds n, which is at most 3: every run would fail
graph
sym n in 1..3
(%x "x": f32[n]) {
  %v: f32[5], %i: i64[5] = topk(%x) {axis = 0, k = [5], largest = 1}
  return %v "v"
}
