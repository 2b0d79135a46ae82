# a gather along lines with known indices picks lanes out of vectors; rows that are gathered are copied as vectors
# run: --march=sse2 --start=lower --stop=lower
graph
(%x: f32[3,10]) {
  %i: i64[2] = const {2, 0}
  %r: f32[2,10] = gather(%x, %i) {axis=0}
  %j: i64[19] = const {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, -1}
  %y: f32[2,19] = gather(%r, %j) {axis=1}
  return %y
}

# expect
ingot 2
prog
math fast
buf b1: in f32[3,10]
buf b2: out f32[2,19]
buf b3: const i64[2] = {2, 0}
buf b4: temp f32[2,10]
kernel "gather"
    as gather_rows lanes 4 ns 5 {
  for i in 0..2 as batch {
    let pick: i64 = b3[i]
    for v in 0..2 as batch {
      b4[i, v * 4:4] = b1[pick, v * 4:4]
    }
    for v in 0..2 as batch {
      b4[i, v + 8] = b1[pick, v + 8]
    }
  }
}
kernel "gather"
    as shuffle lanes 4 ns 7 {
  for i in 0..2 as batch {
    for v in 0..4 as batch {
      b2[i, v * 4:4] = shuffle.0.0.1.1(b4[i, v * 2:4])
    }
    b2[i, 15:4] = shuffle.1.2.2.3(b4[i, 6:4])
  }
}
