# products and sums of f64 have vectors of half as many lanes; a large second factor is brought into panels, and rows
# are multiplied in blocks that stay in a cache
# run: --march=avx2 --start=layout --stop=lower
graph
(%a: f64[720,256], %b: f64[256,256], %x: f64[8,100]) {
  %c: f64[720,256] = contract(%a, %b) {spec="mk,kn->mn"}
  %s: f64[8] = reduce_sum(%x) {axes=[1], keep=0}
  return %c, %s
}

# expect
ingot 2
prog
math fused
buf b1: in f64[720,256]
buf b2: in f64[256,256]
buf b3: in f64[8,100]
buf b4: out f64[720,256]
buf b5: out f64[8]
buf b2_panels: local f64[64,256,4]
buf acc: reg f64x4[6,2]
buf b: reg f64x4[1,2]
buf acc1: reg f64x4[1,4]
kernel "contract"
    as outer_product rows 6 panels 2 lanes 4 sum f64 of f64, f64 packed b2_panels out b4 ns 11763948 reason "6 rows share the vectors of the other, 12 of 12 registers are accumulators, 67% of the time is multiply-adds" {
  for i in 0..8 as batch {
    for i1 in 0..256 as batch {
      for v in 0..8 {
        for l in 0..4 {
          b2_panels[i * 8 + v, i1, l] = b2[i1, (i * 8 + v) * 4 + l]
        }
      }
    }
  }
  for b in 0..6 as batch {
    for o in 0..32 as panel {
      for r in 0..20 as row {
        for p in 0..6 as row unroll {
          for v in 0..2 as panel unroll {
            acc[p, v] = splat.4(0:f64)
          }
        }
        for k in 0..256 as reduce {
          for v in 0..2 as panel unroll {
            b[0, v] = b2_panels[o * 2 + v, k, 0:4]
          }
          for p in 0..6 as row unroll {
            let x: f64x4 = splat.4(b1[b * 120 + r * 6 + p, k])
            for v in 0..2 as panel unroll {
              acc[p, v] = fma(x, b[0, v], acc[p, v])
            }
          }
        }
        for p in 0..6 as row unroll {
          for v in 0..2 as panel unroll {
            b4[b * 120 + r * 6 + p, o * 8 + v * 4:4] = acc[p, v]
          }
        }
      }
    }
  }
}
kernel "reduce_sum"
    as horizontal lanes 4 sum f64 of f64 out b5 ns 185 reason "of 100 elements" {
  for i in 0..8 as batch {
    for v in 0..4 as panel unroll {
      acc1[0, v] = splat.4(0:f64)
    }
    for v in 0..6 as reduce {
      for u in 0..4 unroll {
        acc1[0, u] = acc1[0, u] + b3[i, v * 16 + u * 4:4]
      }
    }
    acc1[0, 0] = acc1[0, 0] + b3[i, 96:4]
    let part: f64x4 = acc1[0, 0] + acc1[0, 1] + acc1[0, 2] + acc1[0, 3]
    b5[i] = shuffle.0(part) + shuffle.1(part) + shuffle.2(part) + shuffle.3(part)
  }
}
