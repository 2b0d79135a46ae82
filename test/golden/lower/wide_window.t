# a window as wide as what it slides over: rows of a tile that meet zeros, not a part for each place
# run: --start=layout --stop=lower --march=sse2
graph (%x: f32[1,4,1,4]) {
  %w: f32[4,1,1,7] = const {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28}
  %y: f32[1,4,1,4] = conv(%x, %w) {group=4, stride=[1,1], dilation=[1,1], pad_lo=[0,3], pad_hi=[0,3]}
  return %y
}

# expect
ingot 2
prog
math fast
buf b1: in f32[1,4,1,4]
buf b2: out f32[1,4,1,4]
buf b5: temp f32[1,1,1,10,4]
buf b7: temp f32[1,1,1,4,4]
buf b3: const f32[1,1,1,1,7,4] = {1, 8, 15, 22, 2, 9, 16, 23, 3, 10, 17, 24, 4, 11, 18, 25, 5, 12, 19, 26, 6, 13, 20, 27, 7, 14, 21, 28}
buf acc: reg f32x4[4,1]
buf b: reg f32x4[1,1]
kernel "border"
    as border ns 2 {
  for i in 0..3 {
    b5[0, 0, 0, i, 0:4] = splat.4(0.0)
  }
  for i in 7..10 {
    b5[0, 0, 0, i, 0:4] = splat.4(0.0)
  }
}
kernel "broadcast"
    as transpose out b5 ns 3 reason "4 contiguous elements are read, 4 are stored" {
  let t: f32x4 = b1[0, 0, 0, 0:4]
  let t1: f32x4 = b1[0, 1, 0, 0:4]
  let t2: f32x4 = b1[0, 2, 0, 0:4]
  let t3: f32x4 = b1[0, 3, 0, 0:4]
  let t4: f32x4 = shuffle.0.1.4.5(t, t2)
  let t5: f32x4 = shuffle.2.3.6.7(t, t2)
  let t6: f32x4 = shuffle.0.1.4.5(t1, t3)
  let t7: f32x4 = shuffle.2.3.6.7(t1, t3)
  let t8: f32x4 = shuffle.0.4.2.6(t4, t6)
  let t9: f32x4 = shuffle.1.5.3.7(t4, t6)
  let t10: f32x4 = shuffle.0.4.2.6(t5, t7)
  let t11: f32x4 = shuffle.1.5.3.7(t5, t7)
  b5[0, 0, 0, 3, 0:4] = t8
  b5[0, 0, 0, 4, 0:4] = t9
  b5[0, 0, 0, 5, 0:4] = t10
  b5[0, 0, 0, 6, 0:4] = t11
}
kernel "dwconv1x7"
    as vertical rows 4 panels 1 lanes 4 sum f32 of f32, f32 packed b3 out b7 ns 32 reason "4 accumulators in 12 registers" {
  for p in 0..4 as row unroll {
    acc[p, 0] = splat.4(0.0)
  }
  for p in 0..7 as reduce unroll {
    b[0, 0] = b3[0, 0, 0, 0, p, 0:4]
    for p1 in 0..4 as row unroll {
      acc[p1, 0] = acc[p1, 0] + b5[0, 0, 0, p1 + p, 0:4] * b[0, 0]
    }
  }
  for p in 0..4 as row unroll {
    b7[0, 0, 0, p, 0:4] = acc[p, 0]
  }
}
kernel "broadcast"
    as transpose out b2 ns 3 reason "4 contiguous elements are read, 4 are stored" {
  let t: f32x4 = b7[0, 0, 0, 0, 0:4]
  let t1: f32x4 = b7[0, 0, 0, 1, 0:4]
  let t2: f32x4 = b7[0, 0, 0, 2, 0:4]
  let t3: f32x4 = b7[0, 0, 0, 3, 0:4]
  let t4: f32x4 = shuffle.0.1.4.5(t, t2)
  let t5: f32x4 = shuffle.2.3.6.7(t, t2)
  let t6: f32x4 = shuffle.0.1.4.5(t1, t3)
  let t7: f32x4 = shuffle.2.3.6.7(t1, t3)
  let t8: f32x4 = shuffle.0.4.2.6(t4, t6)
  let t9: f32x4 = shuffle.1.5.3.7(t4, t6)
  let t10: f32x4 = shuffle.0.4.2.6(t5, t7)
  let t11: f32x4 = shuffle.1.5.3.7(t5, t7)
  b2[0, 0, 0, 0:4] = t8
  b2[0, 1, 0, 0:4] = t9
  b2[0, 2, 0, 0:4] = t10
  b2[0, 3, 0, 0:4] = t11
}
