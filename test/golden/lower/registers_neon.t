# a block of eight channels is two registers of four: thirteen of them are all that thirty-two have room for
# run: --march=neon --start=layout --stop=lower
graph
(%x: f32[1,1,30,1]) {
  %k: f32[16,1,1,1] = const {-1, -2, 0, 2, -3, -3, 3, 1, -3, -1, 1, -3, 1, -2, -3, -3}
  %c: f32[1,16,30,1] = conv(%x, %k) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  return %c
}

# expect
ingot 2
prog
math fused
buf b1: in f32[1,1,30,1]
buf b2: out f32[1,16,30,1]
buf b5: temp f32[1,2,30,1,8]
buf b3: const f32[1,2,1,1,1,8] = {-1, -2, 0, 2, -3, -3, 3, 1, -3, -1, 1, -3, 1, -2, -3, -3}
buf acc: reg f32x8[6,2]
buf b: reg f32x8[1,2]
kernel "conv1x1"
    as outer_product rows 6 panels 2 lanes 8 sum f32 of f32, f32 packed b3 out b5 ns 117 reason "6 rows share the vectors of the other, 12 of 13 registers are accumulators, 67% of the time is multiply-adds" {
  for r in 0..5 as row {
    for p in 0..6 as row unroll {
      for v in 0..2 as panel unroll {
        acc[p, v] = splat.8(0.0)
      }
    }
    for v in 0..2 as panel unroll {
      b[0, v] = b3[0, v, 0, 0, 0, 0:8]
    }
    for p in 0..6 as row unroll {
      let x: f32x8 = splat.8(b1[0, 0, r * 6 + p, 0])
      for v in 0..2 as panel unroll {
        acc[p, v] = fma(x, b[0, v], acc[p, v])
      }
    }
    for p in 0..6 as row unroll {
      for v in 0..2 as panel unroll {
        b5[0, v, r * 6 + p, 0, 0:8] = acc[p, v]
      }
    }
  }
}
kernel "broadcast"
    as plain out b2 ns 272 reason "the result is not contiguous along an axis of known extent" {
  for j in 0..16 as batch {
    for k in 0..30 as batch {
      b2[0, j, k, 0] = b5[0, div(j, 8), k, 0, mod(j, 8)]
    }
  }
}
