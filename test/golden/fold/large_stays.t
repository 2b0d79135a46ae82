# a small constant is not blown up, and symbols are not guessed
# run: --start=fold --stop=fold
graph
sym n in 1..
(%x: f32[n]) {
  %z: f32[] = const {0}
  %a: f32[1000,1000] = broadcast(%z) {shape=[1000,1000]}
  %b: f32[n] = broadcast(%z) {shape=[n]}
  %c: f32[5] = broadcast(%z) {shape=[5]}
  %i: i64[4096] = iota {shape=[4096], axis=0, to=i64}
  %j: i64[2,2] = iota {shape=[2,2], axis=1, to=i64}
  %r: f32[4] = random {shape=[4], to=f32, seed=7}
  return %a, %b, %c, %i, %j, %r
}

# expect
ingot 2
graph
sym n in 1..
(%1: f32[n]) {
  %2: f32[] = const {0}
  %3: f32[1000,1000] = broadcast(%2) {shape=[1000,1000]}
  %4: f32[n] = broadcast(%2) {shape=[n]}
  %5: f32[5] = const {0, 0, 0, 0, 0}
  %6: i64[4096] = iota {shape=[4096], axis=0, to=i64}
  %7: i64[2,2] = const {0, 1, 0, 1}
  %8: f32[4] = random {shape=[4], to=f32, seed=7}
  return %3, %4, %5, %6, %7, %8
}
