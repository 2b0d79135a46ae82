# a convolution with one result reads blocks of channels: a vector of sums for each of eight results, added up crosswise
# run: --march=avx2 --start=layout --stop=lower
graph
(%x: f32[1,1,3,8]) {
  %k: f32[8,1,1,1] = const {-2, 1, 3, 3, 3, -3, -1, -3}
  %c: f32[1,8,3,8] = conv(%x, %k) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %w: f32[1,8,1,3] = const {0, 3, 0, 0, 2, 0, 3, -2, -3, 0, -3, 3, 0, 0, 1, 3, 3, -3, 2, 0, -1, 2, 3, -2}
  %d: f32[1,1,3,8] = conv(%c, %w) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,1], pad_hi=[0,1]}
  %z: f32[] = const {0}
  %r: f32[1,1,3,8] = max(%d, %z)
  return %r
}

# expect
ingot 2
prog
math fused
buf b1: in f32[1,1,3,8]
buf b2: out f32[1,1,3,8]
buf b5: temp f32[1,1,3,10,8]
buf b3: const f32[1,1,1,1,1,8] = {-2, 1, 3, 3, 3, -3, -1, -3}
buf acc: reg f32x8[8,1]
buf b: reg f32x8[1,1]
buf b9: const f32[1,1,1,1,3,8] = {0, 0, 3, 0, 0, 3, 2, 2, 3, 2, -2, -3, 0, 3, 0, 3, 0, 0, -3, 3, 1, -3, -1, -2}
buf acc1: reg f32x8[8,1]
buf all: reg f32x8[1,1]
kernel "border"
    as border ns 2 {
  for i in 0..3 {
    b5[0, 0, i, 0, 0:8] = splat.8(0.0)
  }
  for i in 0..3 {
    b5[0, 0, i, 9, 0:8] = splat.8(0.0)
  }
}
kernel "conv1x1"
    as outer_product rows 8 panels 1 lanes 8 sum f32 of f32, f32 packed b3 out b5 ns 42 reason "8 rows share the vectors of the other, 8 of 12 registers are accumulators, 59% of the time is multiply-adds" {
  for l in 0..3 as batch {
    for p in 0..8 as row unroll {
      acc[p, 0] = splat.8(0.0)
    }
    b[0, 0] = b3[0, 0, 0, 0, 0, 0:8]
    for p in 0..8 as row unroll {
      let x: f32x8 = splat.8(b1[0, 0, l, p])
      acc[p, 0] = fma(x, b[0, 0], acc[p, 0])
    }
    for p in 0..8 as row unroll {
      b5[0, 0, l, p + 1, 0:8] = acc[p, 0]
    }
  }
}
kernel "conv1x3_max"
    as dot_rows lanes 8 sum f32 of f32, f32 packed b9 out b2 ns 77 reason "of 8 elements" {
  for l in 0..3 as batch {
    for p in 0..8 as row unroll {
      acc1[p, 0] = splat.8(0.0)
    }
    for p in 0..3 as reduce {
      let x: f32x8 = b9[0, 0, 0, 0, p, 0:8]
      for p1 in 0..8 as row unroll {
        acc1[p1, 0] = fma(b5[0, 0, l, p1 + p, 0:8], x, acc1[p1, 0])
      }
    }
    let s: f32x8 = acc1[0, 0]
    let s1: f32x8 = acc1[1, 0]
    let s2: f32x8 = acc1[2, 0]
    let s3: f32x8 = acc1[3, 0]
    let s4: f32x8 = acc1[4, 0]
    let s5: f32x8 = acc1[5, 0]
    let s6: f32x8 = acc1[6, 0]
    let s7: f32x8 = acc1[7, 0]
    let s8: f32x8 = shuffle.0.1.2.3.8.9.10.11(s, s4) + shuffle.4.5.6.7.12.13.14.15(s, s4)
    let s9: f32x8 = shuffle.0.1.2.3.8.9.10.11(s1, s5) + shuffle.4.5.6.7.12.13.14.15(s1, s5)
    let s10: f32x8 = shuffle.0.1.2.3.8.9.10.11(s2, s6) + shuffle.4.5.6.7.12.13.14.15(s2, s6)
    let s11: f32x8 = shuffle.0.1.2.3.8.9.10.11(s3, s7) + shuffle.4.5.6.7.12.13.14.15(s3, s7)
    let s12: f32x8 = shuffle.0.1.8.9.4.5.12.13(s8, s10) + shuffle.2.3.10.11.6.7.14.15(s8, s10)
    let s13: f32x8 = shuffle.0.1.8.9.4.5.12.13(s9, s11) + shuffle.2.3.10.11.6.7.14.15(s9, s11)
    let s14: f32x8 = shuffle.0.8.2.10.4.12.6.14(s12, s13) + shuffle.1.9.3.11.5.13.7.15(s12, s13)
    all[0, 0] = s14
    b2[0, 0, l, 0:8] = max(all[0, 0], splat.8(0.0))
  }
}
