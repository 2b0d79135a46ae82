# a convolution whose blocks of channels begin inside one of the concatenation is written as blocks, then copied
# run: --march=avx2 --start=layout --stop=lower
graph
(%x: f32[1,1,3,12]) {
  %k: f32[8,1,1,1] = const {-2, 1, 3, -3, 4, 2, -1, 5}
  %z: f32[] = const {0}
  %c: f32[1,8,3,4] = conv(%x, %k) {group=1, stride=[1,3], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %r: f32[1,8,3,4] = max(%c, %z)
  %s: f32[1,1,3,4] = slice(%x) {start=[0,0,0,0], step=[1,1,1,1], size=[1,1,3,4]}
  %j: f32[1,9,3,4] = concat(%s, %r) {axis=1}
  return %j
}

# expect
ingot 2
prog
math fused
buf b1: in f32[1,1,3,12]
buf b2: out f32[1,9,3,4]
buf b8: temp f32[1,1,3,4,8]
buf b3: const f32[1,1,1,1,1,8] = {-2, 1, 3, -3, 4, 2, -1, 5}
buf acc: reg f32x8[4,1]
buf b: reg f32x8[1,1]
buf tile: local f32[16,8]
kernel "conv1x1_s1x3_max"
    as outer_product rows 4 panels 1 lanes 8 sum f32 of f32, f32 packed b3 out b8 ns 23 reason "4 rows share the vectors of the other, 4 of 12 registers are accumulators, 35% of the time is multiply-adds" {
  for l in 0..3 as batch {
    for p in 0..4 as row unroll {
      acc[p, 0] = splat.8(0.0)
    }
    b[0, 0] = b3[0, 0, 0, 0, 0, 0:8]
    for p in 0..4 as row unroll {
      let x: f32x8 = splat.8(b1[0, 0, l, p * 3])
      acc[p, 0] = fma(x, b[0, 0], acc[p, 0])
    }
    for p in 0..4 as row unroll {
      b8[0, 0, l, p, 0:8] = max(acc[p, 0], splat.8(0.0))
    }
  }
}
kernel "slice_concat"
    as map lanes 4 out b2 ns 1 reason "4 contiguous elements"
    as transpose out b2 ns 64 reason "8 contiguous elements are read, 4 are stored" {
  for k in 0..3 as batch {
    b2[0, 0, k, 0:4] = b1[0, 0, k, 0:4]
  }
  for k in 0..3 as batch 2 {
    for e in 0..4 {
      tile[e, 0:8] = b8[0, 0, k, e, 0:8]
    }
    for c in 0..8 {
      for e in 0..4 {
        b2[0, 1 + c, k, e] = tile[e, c]
      }
    }
  }
}
