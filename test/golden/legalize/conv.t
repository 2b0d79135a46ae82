# a 3x3 convolution as the C back end prints it: every variable, load and product
# run: --march=avx2 --start=layout --stop=legalize
graph
(%x: f32[1,2,6,6]) {
  %k: f32[8,2,3,3] = const {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3}
  %b: f32[8,1,1] = const {1, 2, 3, 4, 5, 6, 7, 8}
  %c: f32[1,8,6,6] = conv(%x, %k) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}
  %r: f32[1,8,6,6] = add(%c, %b)
  return %r
}

# expect
ingot 2
prog
math fused
arena 1216
buf b1: in f32[1,2,6,6]
buf b2: out f32[1,8,6,6]
buf b4: const f32[8,1,1] = {1, 2, 3, 4, 5, 6, 7, 8}
buf b6: temp f32[1,2,8,8] at 0
buf b10: temp f32[1,1,1,6,8] at 1024
buf b3: temp f32[8] alias b4
buf b5: const f32[1,1,2,3,3,8] = {0, 8, 6, 4, 2, 0, 8, 6, 1, 9, 7, 5, 3, 1, 9, 7, 2, 0, 8, 6, 4, 2, 0, 8, 3, 1, 9, 7, 5, 3, 1, 9, 4, 2, 0, 8, 6, 4, 2, 0, 5, 3, 1, 9, 7, 5, 3, 1, 6, 4, 2, 0, 8, 6, 4, 2, 7, 5, 3, 1, 9, 7, 5, 3, 8, 6, 4, 2, 0, 8, 6, 4, 9, 7, 5, 3, 1, 9, 7, 5, 0, 8, 6, 4, 2, 0, 8, 6, 1, 9, 7, 5, 3, 1, 9, 7, 2, 0, 8, 6, 4, 2, 0, 8, 3, 1, 9, 7, 5, 3, 1, 9, 4, 2, 0, 8, 6, 4, 2, 0, 5, 3, 1, 9, 7, 5, 3, 1, 6, 4, 2, 0, 8, 6, 4, 2, 7, 5, 3, 1, 9, 7, 5, 3}
buf acc: reg f32x8[6,1]
buf b: reg f32x8[1,1]
buf tile: local f32[16,8] at 512
kernel "border"
    as border ns 20 {
  for i in 0..2 {
    for i1 in 0..8 {
      b6[0, i, 0, i1] = 0.0
    }
  }
  for i in 0..2 {
    for i1 in 0..8 {
      b6[0, i, 7, i1] = 0.0
    }
  }
  for i in 0..2 {
    for i1 in 1..7 {
      b6[0, i, i1, 0] = 0.0
    }
  }
  for i in 0..2 {
    for i1 in 1..7 {
      b6[0, i, i1, 7] = 0.0
    }
  }
}
kernel "broadcast"
    as map lanes 4 out b6 ns 9 reason "6 contiguous elements" {
  for j in 0..2 as batch {
    for k in 0..6 as batch {
      b6[0, j, k + 1, 1:4] = b1[0, j, k, 0:4]
      b6[0, j, k + 1, 3:4] = b1[0, j, k, 2:4]
    }
  }
}
kernel "conv3x3_add_broadcast"
    as outer_product lanes 8 sum f32 of f32, f32 packed b5 out b10 ns 690 reason "6 rows share the vectors of the other, 6 of 12 registers are accumulators, 48% of the time is multiply-adds"
    as transpose out b2 ns 188 reason "8 contiguous elements are read, 6 are stored" {
  for l in 0..6 as batch 0 {
    let acc_0_0: f32x8 = splat.8(0.0)
    let acc_1_0: f32x8 = splat.8(0.0)
    let acc_2_0: f32x8 = splat.8(0.0)
    let acc_3_0: f32x8 = splat.8(0.0)
    let acc_4_0: f32x8 = splat.8(0.0)
    let acc_5_0: f32x8 = splat.8(0.0)
    for n in 0..2 as reduce {
      for o in 0..3 as reduce {
        for p in 0..3 as reduce {
          fence b6
          pin let b_0_0: f32x8 = b5[0, 0, n, o, p, 0:8]
          let x: f32x8 = splat.8(b6[0, n, l + o, 0 + p])
          set acc_0_0 = fma(x, b_0_0, acc_0_0)
          let x1: f32x8 = splat.8(b6[0, n, l + o, 1 + p])
          set acc_1_0 = fma(x1, b_0_0, acc_1_0)
          let x2: f32x8 = splat.8(b6[0, n, l + o, 2 + p])
          set acc_2_0 = fma(x2, b_0_0, acc_2_0)
          let x3: f32x8 = splat.8(b6[0, n, l + o, 3 + p])
          set acc_3_0 = fma(x3, b_0_0, acc_3_0)
          let x4: f32x8 = splat.8(b6[0, n, l + o, 4 + p])
          set acc_4_0 = fma(x4, b_0_0, acc_4_0)
          let x5: f32x8 = splat.8(b6[0, n, l + o, 5 + p])
          set acc_5_0 = fma(x5, b_0_0, acc_5_0)
        }
      }
    }
    fence b3
    b10[0, 0, 0, 0, 0:8] = acc_0_0 + b3[0:8]
    b10[0, 0, 0, 1, 0:8] = acc_1_0 + b3[0:8]
    b10[0, 0, 0, 2, 0:8] = acc_2_0 + b3[0:8]
    b10[0, 0, 0, 3, 0:8] = acc_3_0 + b3[0:8]
    b10[0, 0, 0, 4, 0:8] = acc_4_0 + b3[0:8]
    b10[0, 0, 0, 5, 0:8] = acc_5_0 + b3[0:8]
    for e in 0..6 {
      tile[e, 0:8] = b10[0, 0, 0, e, 0:8]
    }
    for c in 0..8 {
      for e in 0..6 {
        b2[0, c, l, e] = tile[e, c]
      }
    }
  }
}
