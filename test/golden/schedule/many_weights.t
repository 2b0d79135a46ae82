# 25 weights are more than registers hold, 9 are not
# run: --march=avx2 --start=schedule
prog
buf w: in f32[5,5,8]
buf x: in f32[100,5,5]
buf y: out f32[100,8]
buf z: out f32[100,8]
buf large: reg f32x8[5,5]
buf small: reg f32x8[3,3]
buf acc: reg f32x8[2]
kernel "large" {
  for i in 0..100 {
    acc[0] = splat.8(0.0)
    for a in 0..5 unroll {
      for b in 0..5 unroll {
        large[a, b] = w[a, b, 0:8]
        acc[0] = fma(splat.8(x[i, a, b]), large[a, b], acc[0])
      }
    }
    y[i, 0:8] = acc[0]
  }
}
kernel "small" {
  for i in 0..100 {
    acc[1] = splat.8(0.0)
    for a in 0..3 unroll {
      for b in 0..3 unroll {
        small[a, b] = w[a, b, 0:8]
        acc[1] = fma(splat.8(x[i, a, b]), small[a, b], acc[1])
      }
    }
    z[i, 0:8] = acc[1]
  }
}

# expect
ingot 2
prog
buf w: in f32[5,5,8]
buf x: in f32[100,5,5]
buf y: out f32[100,8]
buf z: out f32[100,8]
buf large: reg f32x8[5,5]
buf small: reg f32x8[3,3]
buf acc: reg f32x8[2]
kernel "large" noinline {
  for i in 0..100 {
    acc[0] = splat.8(0.0)
    fence w spills
    for a in 0..5 unroll {
      for b in 0..5 unroll {
        large[a, b] = w[a, b, 0:8]
        acc[0] = fma(splat.8(x[i, a, b]), large[a, b], acc[0])
      }
    }
    y[i, 0:8] = acc[0]
  }
}
kernel "small" noinline {
  for i in 0..100 {
    acc[1] = splat.8(0.0)
    for a in 0..3 unroll {
      for b in 0..3 unroll {
        small[a, b] = w[a, b, 0:8]
        acc[1] = fma(splat.8(x[i, a, b]), small[a, b], acc[1])
      }
    }
    z[i, 0:8] = acc[1]
  }
}
