# every second result of a spread convolution: a vector of sums is finished as one and stored lane by lane
# run: --march=sse2 --start=canon --stop=lower
graph
(%x: f32[1,1,1,5]) {
  %k: f32[8,1,1,1] = const {-2, 1, 3, 3, 3, -3, -1, -3}
  %c: f32[1,8,1,5] = conv(%x, %k) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %w: f32[1,8,1,2] = const {0, 3, 0, 0, 2, 0, 3, -2, -3, 0, -3, 3, 0, 0, 1, 3}
  %d: f32[1,1,1,10] = conv(%c, %w) {group=1, stride=[1,1], dilation=[1,1], input_dilation=[1,2], pad_lo=[0,1], pad_hi=[0,1]}
  %r: f32[1,1,1,10] = exp(%d)
  return %r
}

# expect
ingot 2
prog
math fast
buf b1: in f32[1,1,1,5]
buf b2: out f32[1,1,1,10]
buf b5: temp f32[1,2,1,5,4]
buf b3: const f32[1,2,1,1,1,4] = {-2, 1, 3, 3, 3, -3, -1, -3}
buf acc: reg f32x4[5,2]
buf b: reg f32x4[1,2]
buf b9: const f32[1,1,2,1,1,4] = {3, 0, 0, -2, 0, 3, 0, 3}
buf acc1: reg f32x4[4,1]
buf all: reg f32x4[1,1]
buf acc2: reg f32x4[1,1]
buf all1: reg f32x4[1,1]
buf b4: const f32[1,1,2,1,1,4] = {0, 0, 2, 3, -3, -3, 0, 1}
buf acc3: reg f32x4[4,1]
buf all2: reg f32x4[1,1]
buf acc4: reg f32x4[1,1]
buf all3: reg f32x4[1,1]
kernel "conv1x1"
    as outer_product rows 5 panels 2 lanes 4 sum f32 of f32, f32 packed b3 out b5 ns 21 reason "5 rows share the vectors of the other, 10 of 12 registers are accumulators, 65% of the time is multiply-adds" {
  for p in 0..5 as row unroll {
    for v in 0..2 as panel unroll {
      acc[p, v] = splat.4(0.0)
    }
  }
  for v in 0..2 as panel unroll {
    b[0, v] = b3[0, v, 0, 0, 0, 0:4]
  }
  for p in 0..5 as row unroll {
    let x: f32x4 = splat.4(b1[0, 0, 0, p])
    for v in 0..2 as panel unroll {
      acc[p, v] = acc[p, v] + x * b[0, v]
    }
  }
  for p in 0..5 as row unroll {
    for v in 0..2 as panel unroll {
      b5[0, v, 0, p, 0:4] = acc[p, v]
    }
  }
}
kernel "conv1x2_exp"
    as dot_rows lanes 4 sum f32 of f32, f32 packed b9 out b2 ns 10 reason "of 8 elements"
    as dot_rows lanes 4 sum f32 of f32, f32 packed b4 out b2 ns 10 reason "of 8 elements" {
  for p in 0..4 as row unroll {
    acc1[p, 0] = splat.4(0.0)
  }
  for v in 0..2 as reduce {
    let x: f32x4 = b9[0, 0, v, 0, 0, 0:4]
    for p in 0..4 as row unroll {
      acc1[p, 0] = acc1[p, 0] + b5[0, v, 0, p, 0:4] * x
    }
  }
  let s: f32x4 = acc1[0, 0]
  let s1: f32x4 = acc1[1, 0]
  let s2: f32x4 = acc1[2, 0]
  let s3: f32x4 = acc1[3, 0]
  let s4: f32x4 = shuffle.0.1.4.5(s, s2) + shuffle.2.3.6.7(s, s2)
  let s5: f32x4 = shuffle.0.1.4.5(s1, s3) + shuffle.2.3.6.7(s1, s3)
  let s6: f32x4 = shuffle.0.4.2.6(s4, s5) + shuffle.1.5.3.7(s4, s5)
  all[0, 0] = s6
  let done: f32x4 = exp(all[0, 0])
  b2[0, 0, 0, 0] = shuffle.0(done)
  b2[0, 0, 0, 2] = shuffle.1(done)
  b2[0, 0, 0, 4] = shuffle.2(done)
  b2[0, 0, 0, 6] = shuffle.3(done)
  acc2[0, 0] = splat.4(0.0)
  for v in 0..2 as reduce {
    let x: f32x4 = b9[0, 0, v, 0, 0, 0:4]
    acc2[0, 0] = acc2[0, 0] + b5[0, v, 0, 4, 0:4] * x
  }
  let s7: f32x4 = acc2[0, 0]
  let s8: f32x4 = acc2[0, 0]
  let s9: f32x4 = acc2[0, 0]
  let s10: f32x4 = acc2[0, 0]
  let s11: f32x4 = shuffle.0.1.4.5(s7, s9) + shuffle.2.3.6.7(s7, s9)
  let s12: f32x4 = shuffle.0.1.4.5(s8, s10) + shuffle.2.3.6.7(s8, s10)
  let s13: f32x4 = shuffle.0.4.2.6(s11, s12) + shuffle.1.5.3.7(s11, s12)
  all1[0, 0] = s13
  b2[0, 0, 0, 8] = exp(shuffle.0(all1[0, 0]))
  for p in 0..4 as row 2 unroll {
    acc3[p, 0] = splat.4(0.0)
  }
  for v in 0..2 as reduce 2 {
    let x: f32x4 = b4[0, 0, v, 0, 0, 0:4]
    for p in 0..4 as row 2 unroll {
      acc3[p, 0] = acc3[p, 0] + b5[0, v, 0, p, 0:4] * x
    }
  }
  let s14: f32x4 = acc3[0, 0]
  let s15: f32x4 = acc3[1, 0]
  let s16: f32x4 = acc3[2, 0]
  let s17: f32x4 = acc3[3, 0]
  let s18: f32x4 = shuffle.0.1.4.5(s14, s16) + shuffle.2.3.6.7(s14, s16)
  let s19: f32x4 = shuffle.0.1.4.5(s15, s17) + shuffle.2.3.6.7(s15, s17)
  let s20: f32x4 = shuffle.0.4.2.6(s18, s19) + shuffle.1.5.3.7(s18, s19)
  all2[0, 0] = s20
  let done1: f32x4 = exp(all2[0, 0])
  b2[0, 0, 0, 1] = shuffle.0(done1)
  b2[0, 0, 0, 3] = shuffle.1(done1)
  b2[0, 0, 0, 5] = shuffle.2(done1)
  b2[0, 0, 0, 7] = shuffle.3(done1)
  acc4[0, 0] = splat.4(0.0)
  for v in 0..2 as reduce 2 {
    let x: f32x4 = b4[0, 0, v, 0, 0, 0:4]
    acc4[0, 0] = acc4[0, 0] + b5[0, v, 0, 4, 0:4] * x
  }
  let s21: f32x4 = acc4[0, 0]
  let s22: f32x4 = acc4[0, 0]
  let s23: f32x4 = acc4[0, 0]
  let s24: f32x4 = acc4[0, 0]
  let s25: f32x4 = shuffle.0.1.4.5(s21, s23) + shuffle.2.3.6.7(s21, s23)
  let s26: f32x4 = shuffle.0.1.4.5(s22, s24) + shuffle.2.3.6.7(s22, s24)
  let s27: f32x4 = shuffle.0.4.2.6(s25, s26) + shuffle.1.5.3.7(s25, s26)
  all3[0, 0] = s27
  b2[0, 0, 0, 9] = exp(shuffle.0(all3[0, 0]))
}
