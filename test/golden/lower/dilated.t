# a window that hardly fits: parts of the result in which nothing falls outside, and no zeros around the operand
# run: --start=layout --stop=lower --march=sse2
graph (%x: f32[1,4,5,1]) {
  %w: f32[4,4,3,1] = const {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48}
  %y: f32[1,4,5,1] = conv(%x, %w) {group=1, stride=[1,1], dilation=[4,1], pad_lo=[4,0], pad_hi=[4,0]}
  return %y
}

# expect
ingot 2
prog
math fast
buf b1: in f32[1,4,5,1]
buf b2: out f32[1,4,5,1]
buf b5: temp f32[1,1,5,1,4]
buf b3: const f32[1,1,4,3,1,4] = {1, 13, 25, 37, 2, 14, 26, 38, 3, 15, 27, 39, 4, 16, 28, 40, 5, 17, 29, 41, 6, 18, 30, 42, 7, 19, 31, 43, 8, 20, 32, 44, 9, 21, 33, 45, 10, 22, 34, 46, 11, 23, 35, 47, 12, 24, 36, 48}
buf acc: reg f32x4[1,1]
buf b: reg f32x4[1,1]
buf acc1: reg f32x4[3,1]
buf b4: reg f32x4[1,1]
buf acc2: reg f32x4[1,1]
buf b6: reg f32x4[1,1]
kernel "conv3x1_d4x1"
    as segments out b5 reason "47% read an element, fewer than 60%"
    as outer_product rows 1 panels 1 lanes 4 sum f32 of f32, f32 packed b3 out b5 ns 22 reason "a single row, 1 panels"
    as outer_product rows 3 panels 1 lanes 4 sum f32 of f32, f32 packed b3 out b5 ns 17 reason "3 rows share the vectors of the other, 3 of 12 registers are accumulators, 27% of the time is multiply-adds" {
  acc[0, 0] = splat.4(0.0)
  for n in 0..4 as reduce 2 {
    for o in 1..3 as reduce 2 {
      b[0, 0] = b3[0, 0, n, o, 0, 0:4]
      let x: f32x4 = splat.4(b1[0, n, o * 4 - 4, 0])
      acc[0, 0] = acc[0, 0] + x * b[0, 0]
    }
  }
  b5[0, 0, 0, 0, 0:4] = acc[0, 0]
  for p in 0..3 as row 3 unroll {
    acc1[p, 0] = splat.4(0.0)
  }
  for n in 0..4 as reduce 3 {
    b4[0, 0] = b3[0, 0, n, 1, 0, 0:4]
    for p in 0..3 as row 3 unroll {
      let x: f32x4 = splat.4(b1[0, n, 1 + p, 0])
      acc1[p, 0] = acc1[p, 0] + x * b4[0, 0]
    }
  }
  for p in 0..3 as row 3 unroll {
    b5[0, 0, 1 + p, 0, 0:4] = acc1[p, 0]
  }
  acc2[0, 0] = splat.4(0.0)
  for n in 0..4 as reduce 2 {
    for o in 0..2 as reduce 2 {
      b6[0, 0] = b3[0, 0, n, o, 0, 0:4]
      let x: f32x4 = splat.4(b1[0, n, 4 + o * 4 - 4, 0])
      acc2[0, 0] = acc2[0, 0] + x * b6[0, 0]
    }
  }
  b5[0, 0, 4, 0, 0:4] = acc2[0, 0]
}
kernel "broadcast"
    as plain out b2 ns 12 reason "the result is not contiguous along an axis of known extent" {
  for j in 0..4 as batch {
    for k in 0..5 as batch {
      b2[0, j, k, 0] = b5[0, div(j, 4), k, 0, mod(j, 4)]
    }
  }
}
