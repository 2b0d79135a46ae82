# a convolution over any number of images: channels in blocks, borders of as many images, tiles of rows; the product behind it takes nine images at a time, then four, then one by one
# run: --march=avx2 --start=layout --stop=lower
graph sym n in 1..9
(%x "x": f32[n,1,4,4]) {
  %k: f32[8,1,1,2] = const {-2, 1, 3, -3, 4, 2, -1, 5, 7, 1, 2, 3, 4, 5, 6, 8}
  %w: f32[8,8] = const {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}
  %c: f32[n,8,4,4] = conv(%x, %k) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,1], pad_hi=[0,0]}
  %m: f32[n,8] = reduce_max(%c) {axes=[2,3], keep=0}
  %y: f32[n,8] = contract(%m, %w) {spec="mk,kn->mn"}
  return %y "y"
}

# expect
ingot 2
prog
sym n in 1..9
math fused
buf x: in f32[n,1,4,4]
buf y: out f32[n,8]
buf b6: temp f32[n,1,4,5]
buf b8: temp f32[n,1,4,4,8]
buf b3: const f32[1,1,1,1,2,8] = {-2, 3, 4, -1, 7, 2, 4, 6, 1, -3, 2, 5, 1, 3, 5, 8}
buf acc: reg f32x8[4,1]
buf b: reg f32x8[1,1]
buf b12: temp f32[n,8]
buf acc1: reg f32x8[1,1]
buf b1: reg f32x8[1,1]
buf b4: const f32[1,8,8] = {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}
buf acc2: reg f32x8[9,1]
buf b2: reg f32x8[1,1]
buf acc3: reg f32x8[4,1]
buf b5: reg f32x8[1,1]
buf acc4: reg f32x8[1,1]
buf b7: reg f32x8[1,1]
kernel "border"
    as border ns 13 {
  for i in 0..n {
    for i1 in 0..4 {
      b6[i, 0, i1, 0] = 0.0
    }
  }
}
kernel "broadcast"
    as map lanes 4 out b6 ns 18 reason "4 contiguous elements" {
  for i in 0..n as batch {
    for k in 0..4 as batch {
      b6[i, 0, k, 1:4] = x[i, 0, k, 0:4]
    }
  }
}
kernel "conv1x2"
    as outer_product rows 4 panels 1 lanes 8 sum f32 of f32, f32 packed b3 out b8 ns 415 reason "4 rows share the vectors of the other, 4 of 12 registers are accumulators, 35% of the time is multiply-adds" {
  for i in 0..n as batch {
    for l in 0..4 as batch {
      for p in 0..4 as row unroll {
        acc[p, 0] = splat.8(0.0)
      }
      for p in 0..2 as reduce {
        b[0, 0] = b3[0, 0, 0, 0, p, 0:8]
        for p1 in 0..4 as row unroll {
          let x: f32x8 = splat.8(b6[i, 0, l, p1 + p])
          acc[p1, 0] = fma(x, b[0, 0], acc[p1, 0])
        }
      }
      for p in 0..4 as row unroll {
        b8[i, 0, l, p, 0:8] = acc[p, 0]
      }
    }
  }
}
kernel "reduce_max"
    as vertical rows 1 panels 1 lanes 8 sum f32 of f32 out b12 ns 145 reason "a single row, 1 panels" {
  for i in 0..n as batch {
    acc1[0, 0] = splat.8(-inf)
    for k in 0..4 as reduce {
      for l in 0..4 as reduce {
        b1[0, 0] = b8[i, 0, k, l, 0:8]
        acc1[0, 0] = max(acc1[0, 0], b1[0, 0])
      }
    }
    b12[i, 0:8] = acc1[0, 0]
  }
}
kernel "contract"
    as outer_product rows 9 panels 1 lanes 8 sum f32 of f32, f32 packed b4 out y ns 316 reason "9 rows share the vectors of the other, 9 of 12 registers are accumulators, 60% of the time is multiply-adds" {
  for r in 0..div(n, 9) as row {
    for p in 0..9 as row unroll {
      acc2[p, 0] = splat.8(0.0)
    }
    for k in 0..8 as reduce {
      b2[0, 0] = b4[0, k, 0:8]
      for p in 0..9 as row unroll {
        let x: f32x8 = splat.8(b12[r * 9 + p, k])
        acc2[p, 0] = fma(x, b2[0, 0], acc2[p, 0])
      }
    }
    for p in 0..9 as row unroll {
      y[r * 9 + p, 0:8] = acc2[p, 0]
    }
  }
  for r in 0..div(n - div(n, 9) * 9, 4) as row {
    for p in 0..4 as row unroll {
      acc3[p, 0] = splat.8(0.0)
    }
    for k in 0..8 as reduce {
      b5[0, 0] = b4[0, k, 0:8]
      for p in 0..4 as row unroll {
        let x: f32x8 = splat.8(b12[r * 4 + div(n, 9) * 9 + p, k])
        acc3[p, 0] = fma(x, b5[0, 0], acc3[p, 0])
      }
    }
    for p in 0..4 as row unroll {
      y[r * 4 + div(n, 9) * 9 + p, 0:8] = acc3[p, 0]
    }
  }
  for r in div(n, 9) * 9 + div(n - div(n, 9) * 9, 4) * 4..n as row {
    acc4[0, 0] = splat.8(0.0)
    for k in 0..8 as reduce {
      b7[0, 0] = b4[0, k, 0:8]
      let x: f32x8 = splat.8(b12[r, k])
      acc4[0, 0] = fma(x, b7[0, 0], acc4[0, 0])
    }
    y[r, 0:8] = acc4[0, 0]
  }
}
