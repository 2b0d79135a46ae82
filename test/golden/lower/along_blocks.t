# a sum over channels that lie in blocks runs along vectors of them
# run: --march=avx2 --start=layout --stop=lower
graph
(%x: f32[1,1,3,3]) {
  %k: f32[16,1,1,1] = const {-1, -2, 0, 2, -3, -3, 3, 1, -3, -1, 1, -3, 1, -2, -3, -3}
  %c: f32[1,16,3,3] = conv(%x, %k) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %t: f32[1,3,3,16] = transpose(%c) {perm=[0,2,3,1]}
  %s: f32[1,3,3] = reduce_sum(%t) {axes=[3], keep=0}
  return %s
}

# expect
ingot 2
prog
math fused
buf b1: in f32[1,1,3,3]
buf b2: out f32[1,3,3]
buf b5: temp f32[1,2,3,3,8]
buf b3: const f32[1,2,1,1,1,8] = {-1, -2, 0, 2, -3, -3, 3, 1, -3, -1, 1, -3, 1, -2, -3, -3}
buf acc: reg f32x8[3,2]
buf b: reg f32x8[1,2]
buf acc1: reg f32x8[1,2]
kernel "conv1x1"
    as outer_product rows 3 panels 2 lanes 8 sum f32 of f32, f32 packed b3 out b5 ns 37 reason "3 rows share the vectors of the other, 6 of 12 registers are accumulators, 48% of the time is multiply-adds" {
  for l in 0..3 as batch {
    for p in 0..3 as row unroll {
      for v in 0..2 as panel unroll {
        acc[p, v] = splat.8(0.0)
      }
    }
    for v in 0..2 as panel unroll {
      b[0, v] = b3[0, v, 0, 0, 0, 0:8]
    }
    for p in 0..3 as row unroll {
      let x: f32x8 = splat.8(b1[0, 0, l, p])
      for v in 0..2 as panel unroll {
        acc[p, v] = fma(x, b[0, v], acc[p, v])
      }
    }
    for p in 0..3 as row unroll {
      for v in 0..2 as panel unroll {
        b5[0, v, l, p, 0:8] = acc[p, v]
      }
    }
  }
}
kernel "transpose_reduce_sum"
    as horizontal lanes 8 sum f32 of f32 out b2 ns 54 reason "of 16 elements" {
  for j in 0..3 as batch {
    for k in 0..3 as batch {
      for v in 0..2 as panel unroll {
        acc1[0, v] = splat.8(0.0)
      }
      for v in 0..1 as reduce {
        for u in 0..2 unroll {
          acc1[0, u] = acc1[0, u] + b5[0, v * 2 + u, j, k, 0:8]
        }
      }
      let half: f32x8 = acc1[0, 0] + acc1[0, 1]
      let part: f32x8 = half + shuffle.4.5.6.7.0.1.2.3(half)
      b2[0, j, k] = shuffle.0(part) + shuffle.1(part) + shuffle.2(part) + shuffle.3(part)
    }
  }
}
