# the elements of a window that slides are loaded at each of its three steps; a loop of eight steps is not written out
# run: --march=avx2 --start=schedule
prog
buf x: in f32[34]
buf w: in f32[8,8]
buf y: out f32[2,8,8]
buf acc: reg f32x8[4]
buf sum: reg f32x8[4]
kernel "three" {
  for k in 0..3 {
    for r in 0..4 unroll {
      let v: f32x8 = splat.8(x[r + k])
      acc[r] = fma(v, w[k, 0:8], acc[r])
    }
  }
  for r in 0..4 unroll {
    y[0, r, 0:8] = acc[r]
  }
}
kernel "eight" {
  for k in 0..8 {
    for r in 0..4 unroll {
      let v: f32x8 = splat.8(x[r + k])
      sum[r] = fma(v, w[k, 0:8], sum[r])
    }
  }
  for r in 0..4 unroll {
    y[1, r, 0:8] = sum[r]
  }
}

# expect
ingot 2
prog
buf x: in f32[34]
buf w: in f32[8,8]
buf y: out f32[2,8,8]
buf acc: reg f32x8[4]
buf sum: reg f32x8[4]
kernel "three" {
  for k in 0..3 {
    fence x
    for r in 0..4 unroll {
      let v: f32x8 = splat.8(x[r + k])
      acc[r] = fma(v, w[k, 0:8], acc[r])
    }
  }
  for r in 0..4 unroll {
    y[0, r, 0:8] = acc[r]
  }
}
kernel "eight" {
  for k in 0..8 {
    for r in 0..4 unroll {
      let v: f32x8 = splat.8(x[r + k])
      sum[r] = fma(v, w[k, 0:8], sum[r])
    }
  }
  for r in 0..4 unroll {
    y[1, r, 0:8] = sum[r]
  }
}
