# two registers a vector: sums leave no room, and what is loaded is loaded again
# run: --march=sse2 --start=schedule
prog
buf x: in f32[4,100]
buf w: in f32[100,2,8]
buf y: out f32[4,2,8]
buf acc: reg f32x8[4,2]
buf b: reg f32x8[2]
kernel "product" {
  for k in 0..100 {
    for v in 0..2 unroll {
      b[v] = w[k, v, 0:8]
    }
    for r in 0..4 unroll {
      for v in 0..2 unroll {
        acc[r, v] = fma(splat.8(x[r, k]), b[v], acc[r, v])
      }
    }
  }
  for r in 0..4 unroll {
    for v in 0..2 unroll {
      y[r, v, 0:8] = acc[r, v]
    }
  }
}

# expect
ingot 2
prog
buf x: in f32[4,100]
buf w: in f32[100,2,8]
buf y: out f32[4,2,8]
buf acc: reg f32x8[4,2]
buf b: reg f32x8[2]
kernel "product" noinline {
  for k in 0..100 {
    for v in 0..2 unroll {
      b[v] = w[k, v, 0:8]
    }
    for r in 0..4 unroll {
      for v in 0..2 unroll {
        acc[r, v] = fma(splat.8(x[r, k]), b[v], acc[r, v])
      }
    }
  }
  for r in 0..4 unroll {
    for v in 0..2 unroll {
      y[r, v, 0:8] = acc[r, v]
    }
  }
}
