# what finishes sums is loaded behind their loop, not before the loop around it
# run: --march=avx2 --start=schedule
prog
buf x: in f32[64,16]
buf w: in f32[16,8]
buf bias: in f32[8]
buf y: out f32[64,8]
buf acc: reg f32x8[4]
kernel "product" {
  for i in 0..16 {
    for r in 0..4 unroll {
      acc[r] = splat.8(0.0)
    }
    for k in 0..16 {
      for r in 0..4 unroll {
        acc[r] = fma(splat.8(x[i * 4 + r, k]), w[k, 0:8], acc[r])
      }
    }
    for r in 0..4 unroll {
      y[i * 4 + r, 0:8] = acc[r] + bias[0:8]
    }
  }
}

# expect
ingot 2
prog
buf x: in f32[64,16]
buf w: in f32[16,8]
buf bias: in f32[8]
buf y: out f32[64,8]
buf acc: reg f32x8[4]
kernel "product" {
  for i in 0..16 {
    for r in 0..4 unroll {
      acc[r] = splat.8(0.0)
    }
    for k in 0..16 {
      for r in 0..4 unroll {
        acc[r] = fma(splat.8(x[i * 4 + r, k]), w[k, 0:8], acc[r])
      }
    }
    fence bias
    for r in 0..4 unroll {
      y[i * 4 + r, 0:8] = acc[r] + bias[0:8]
    }
  }
}
