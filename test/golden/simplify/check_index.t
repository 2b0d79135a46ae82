# what must be in range is not tested
# run: --start=simplify --stop=simplify
graph
sym n in 1..8
(%x: f32[n,4], %t: f32[n], %k: i64[3]) {
  %a: i64[4] = argmax(%x) {axis=0, keep=0, last=0}
  %b: i64[4] = check_index(%a) {size=[n]}
  %y: f32[4] = gather(%t, %b) {axis=0}
  %c: i64[3] = check_index(%k) {size=[n]}
  %z: f32[3] = gather(%t, %c) {axis=0}
  return %y, %z
}

# expect
ingot 2
graph
sym n in 1..8
(%1: f32[n,4], %2: f32[n], %3: i64[3]) {
  %4: i64[4] = argmax(%1) {axis=0, keep=0, last=0}
  %5: f32[4] = gather(%2, %4) {axis=0}
  %6: i64[3] = check_index(%3) {size=[n]}
  %7: f32[3] = gather(%2, %6) {axis=0}
  return %5, %7
}
