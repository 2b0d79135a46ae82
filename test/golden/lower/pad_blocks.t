# zeros behind blocks: what was there is copied block by block, the last channels one by one, for lanes behind them are channels now
# run: --march=avx2 --start=layout --stop=lower
graph
(%x: f32[1,1,2,2]) {
  %k: f32[12,1,1,1] = const {-1, -2, 0, 2, -3, -3, 1, 2, 3, 4, 5, 6}
  %z: f32[] = const {0}
  %c: f32[1,12,2,2] = conv(%x, %k) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %b: f32[1,15,2,2] = pad(%c, %z) {lo=[0,0,0,0], hi=[0,3,0,0], interior=[0,0,0,0]}
  return %b
}

# expect
ingot 2
prog
math fused
buf b1: in f32[1,1,2,2]
buf b2: out f32[1,15,2,2]
buf b6: temp f32[1,2,2,2,8]
buf b3: const f32[1,2,1,1,1,8] = {-1, -2, 0, 2, -3, -3, 1, 2, 3, 4, 5, 6, 0, 0, 0, 0}
buf acc: reg f32x8[2,2]
buf b: reg f32x8[1,2]
buf b11: temp f32[1,2,2,2,8]
kernel "conv1x1"
    as outer_product rows 2 panels 2 lanes 8 sum f32 of f32, f32 packed b3 out b6 ns 17 reason "2 rows share the vectors of the other, 4 of 12 registers are accumulators, 33% of the time is multiply-adds" {
  for l in 0..2 as batch {
    for p in 0..2 as row unroll {
      for v in 0..2 as panel unroll {
        acc[p, v] = splat.8(0.0)
      }
    }
    for v in 0..2 as panel unroll {
      b[0, v] = b3[0, v, 0, 0, 0, 0:8]
    }
    for p in 0..2 as row unroll {
      let x: f32x8 = splat.8(b1[0, 0, l, p])
      for v in 0..2 as panel unroll {
        acc[p, v] = fma(x, b[0, v], acc[p, v])
      }
    }
    for p in 0..2 as row unroll {
      for v in 0..2 as panel unroll {
        b6[0, v, l, p, 0:8] = acc[p, v]
      }
    }
  }
}
kernel "pad"
    as map lanes 8 out b11 ns 4 reason "15 contiguous elements"
    as map lanes 8 out b11 ns 4 reason "12 contiguous elements" {
  for v in 0..2 as lane {
    for k in 0..2 as batch {
      for l in 0..2 as batch {
        b11[0, v, k, l, 0:8] = splat.8(0.0)
      }
    }
  }
  for k in 0..2 as batch 2 {
    for l in 0..2 as batch 2 {
      b11[0, 0, k, l, 0:8] = b6[0, 0, k, l, 0:8]
    }
  }
  for k in 0..2 as batch 2 {
    for l in 0..2 as batch 2 {
      b11[0, 1, k, l, 0:4] = b6[0, 1, k, l, 0:4]
    }
  }
}
kernel "broadcast"
    as plain out b2 ns 43 reason "the result has fewer contiguous elements than a vector has lanes" {
  for j in 0..15 as batch {
    for k in 0..2 as batch {
      for l in 0..2 as batch {
        b2[0, j, k, l] = b11[0, div(j, 8), k, l, mod(j, 8)]
      }
    }
  }
}
