# two groups of channels share a block: vectors are as wide as a group, and each begins at its part of the block
# run: --march=avx2 --start=layout --stop=lower
graph
(%x: f32[1,1,2,2]) {
  %k: f32[8,1,1,1] = const {-2, 0, 2, -1, 1, -2, 0, 2}
  %w: f32[8,4,1,1] = const {-3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2}
  %a: f32[1,8,2,2] = conv(%x, %k) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %b: f32[1,8,2,2] = conv(%a, %w) {group=2, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %c: f32[1,8,2,2] = add(%a, %b)
  %d: f32[1,8,1,1] = pool_max(%c) {window=[2,2], stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  return %d
}

# expect
ingot 2
prog
math fused
buf b1: in f32[1,1,2,2]
buf b2: out f32[1,8,1,1]
buf b6: temp f32[1,1,2,2,8]
buf b3: const f32[1,1,1,1,1,8] = {-2, 0, 2, -1, 1, -2, 0, 2}
buf acc: reg f32x8[2,1]
buf b: reg f32x8[1,1]
buf b13: temp f32[1,1,2,2,8]
buf b4: const f32[2,1,1,1,1,4,4] = {-3, 3, 2, 1, 2, 1, 0, -1, 0, -1, -2, -3, -2, -3, 3, 2, 0, -1, -2, -3, -2, -3, 3, 2, 3, 2, 1, 0, 1, 0, -1, -2}
buf acc1: reg f32x4[2,1]
buf b5: reg f32x4[1,1]
buf b18: temp f32[1,1,1,1,8]
buf acc2: reg f32x8[1,1]
buf b7: reg f32x8[1,1]
kernel "conv1x1"
    as outer_product rows 2 panels 1 lanes 8 sum f32 of f32, f32 packed b3 out b6 ns 8 reason "2 rows share the vectors of the other, 2 of 12 registers are accumulators, 19% of the time is multiply-adds" {
  for l in 0..2 as batch {
    for p in 0..2 as row unroll {
      acc[p, 0] = splat.8(0.0)
    }
    b[0, 0] = b3[0, 0, 0, 0, 0, 0:8]
    for p in 0..2 as row unroll {
      let x: f32x8 = splat.8(b1[0, 0, l, p])
      acc[p, 0] = fma(x, b[0, 0], acc[p, 0])
    }
    for p in 0..2 as row unroll {
      b6[0, 0, l, p, 0:8] = acc[p, 0]
    }
  }
}
kernel "conv1x1_add"
    as outer_product rows 2 panels 1 lanes 4 sum f32 of f32, f32 packed b4 out b13 ns 46 reason "2 rows share the vectors of the other, 2 of 12 registers are accumulators, 19% of the time is multiply-adds" {
  for j in 0..2 as batch {
    for l in 0..2 as batch {
      for p in 0..2 as row unroll {
        acc1[p, 0] = splat.4(0.0)
      }
      for c in 0..4 as reduce {
        b5[0, 0] = b4[j, 0, 0, 0, 0, c, 0:4]
        for p in 0..2 as row unroll {
          let x: f32x4 = splat.4(b6[0, div(j, 2), l, p, mod(j, 2) * 4 + c])
          acc1[p, 0] = fma(x, b5[0, 0], acc1[p, 0])
        }
      }
      for p in 0..2 as row unroll {
        b13[0, div(j, 2), l, p, mod(j, 2) * 4:4] = b6[0, div(j, 2), l, p, mod(j, 2) * 4:4] + acc1[p, 0]
      }
    }
  }
}
kernel "pool_max2x2"
    as vertical rows 1 panels 1 lanes 8 sum f32 of f32 out b18 ns 4 reason "a single row, 1 panels" {
  acc2[0, 0] = splat.8(-inf)
  for m in 0..2 as reduce {
    for n in 0..2 as reduce {
      b7[0, 0] = b13[0, 0, m, n, 0:8]
      acc2[0, 0] = max(acc2[0, 0], b7[0, 0])
    }
  }
  b18[0, 0, 0, 0, 0:8] = acc2[0, 0]
}
kernel "broadcast"
    as plain out b2 ns 4 reason "the result is not contiguous along an axis of known extent" {
  for j in 0..8 as batch {
    b2[0, j, 0, 0] = b18[0, div(j, 8), 0, 0, mod(j, 8)]
  }
}
