# an image that a core's own cache does not hold: a few lines of it meet all panels of weights before the next ones do
# run: --start=layout --stop=lower --march=sse2
graph (%x: f32[2,4,184,184]) {
  %w: f32[16,4,1,1] = const {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64}
  %y: f32[2,16,184,184] = conv(%x, %w) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  return %y
}

# expect
ingot 2
prog
math fast
buf b1: in f32[2,4,184,184]
buf b2: out f32[2,16,184,184]
buf b5: temp f32[2,4,184,184,4]
buf b3: const f32[1,4,4,1,1,4] = {1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 4, 8, 12, 16, 17, 21, 25, 29, 18, 22, 26, 30, 19, 23, 27, 31, 20, 24, 28, 32, 33, 37, 41, 45, 34, 38, 42, 46, 35, 39, 43, 47, 36, 40, 44, 48, 49, 53, 57, 61, 50, 54, 58, 62, 51, 55, 59, 63, 52, 56, 60, 64}
buf acc: reg f32x4[6,2]
buf b: reg f32x4[1,2]
buf acc1: reg f32x4[5,2]
buf b4: reg f32x4[1,2]
kernel "conv1x1"
    as outer_product rows 6 panels 2 lanes 4 sum f32 of f32, f32 packed b3 out b5 ns 1468355 reason "6 rows share the vectors of the other, 12 of 12 registers are accumulators, 67% of the time is multiply-adds" {
  for i in 0..2 as batch {
    for b in 0..4 as batch {
      for o in 0..2 as panel {
        for l in 0..46 as batch {
          for r in 0..29 as row {
            for p in 0..6 as row unroll {
              for v in 0..2 as panel unroll {
                acc[p, v] = splat.4(0.0)
              }
            }
            for n in 0..4 as reduce {
              for v in 0..2 as panel unroll {
                b[0, v] = b3[0, o * 2 + v, n, 0, 0, 0:4]
              }
              for p in 0..6 as row unroll {
                let x: f32x4 = splat.4(b1[i, n, b * 46 + l, r * 6 + p])
                for v in 0..2 as panel unroll {
                  acc[p, v] = acc[p, v] + x * b[0, v]
                }
              }
            }
            for p in 0..6 as row unroll {
              for v in 0..2 as panel unroll {
                b5[i, o * 2 + v, b * 46 + l, r * 6 + p, 0:4] = acc[p, v]
              }
            }
          }
          for r in 0..2 as row {
            for p in 0..5 as row unroll {
              for v in 0..2 as panel unroll {
                acc1[p, v] = splat.4(0.0)
              }
            }
            for n in 0..4 as reduce {
              for v in 0..2 as panel unroll {
                b4[0, v] = b3[0, o * 2 + v, n, 0, 0, 0:4]
              }
              for p in 0..5 as row unroll {
                let x: f32x4 = splat.4(b1[i, n, b * 46 + l, r * 5 + 174 + p])
                for v in 0..2 as panel unroll {
                  acc1[p, v] = acc1[p, v] + x * b4[0, v]
                }
              }
            }
            for p in 0..5 as row unroll {
              for v in 0..2 as panel unroll {
                b5[i, o * 2 + v, b * 46 + l, r * 5 + 174 + p, 0:4] = acc1[p, v]
              }
            }
          }
        }
      }
    }
  }
}
kernel "broadcast"
    as transpose out b2 ns 208921 reason "16 contiguous elements are read, 184 are stored" {
  for i in 0..2 as batch {
    for k in 0..184 as batch {
      for o in 0..4 as batch {
        for r in 0..46 {
          let t: f32x4 = b5[i, o, k, r * 4, 0:4]
          let t1: f32x4 = b5[i, o, k, r * 4 + 1, 0:4]
          let t2: f32x4 = b5[i, o, k, r * 4 + 2, 0:4]
          let t3: f32x4 = b5[i, o, k, r * 4 + 3, 0:4]
          let t4: f32x4 = shuffle.0.1.4.5(t, t2)
          let t5: f32x4 = shuffle.2.3.6.7(t, t2)
          let t6: f32x4 = shuffle.0.1.4.5(t1, t3)
          let t7: f32x4 = shuffle.2.3.6.7(t1, t3)
          let t8: f32x4 = shuffle.0.4.2.6(t4, t6)
          let t9: f32x4 = shuffle.1.5.3.7(t4, t6)
          let t10: f32x4 = shuffle.0.4.2.6(t5, t7)
          let t11: f32x4 = shuffle.1.5.3.7(t5, t7)
          b2[i, o * 4, k, r * 4:4] = t8
          b2[i, o * 4 + 1, k, r * 4:4] = t9
          b2[i, o * 4 + 2, k, r * 4:4] = t10
          b2[i, o * 4 + 3, k, r * 4:4] = t11
        }
      }
    }
  }
}
