# counts of unrolled loops do not overflow
# run: --start=schedule --stop=schedule --march avx2
prog p
buf x: in f32[16]
buf y: out f32[16]
kernel "k" {
  for i in 0..2147483647 unroll {
    for j in 0..2147483647 unroll {
      for k in 0..2147483647 unroll {
        y[0:8] = fma(x[0:8], x[0:8], x[0:8])
      }
    }
  }
}

# expect
ingot 2
prog p
buf x: in f32[16]
buf y: out f32[16]
kernel "k" noinline {
  for i in 0..2147483647 unroll {
    for j in 0..2147483647 unroll {
      for k in 0..2147483647 unroll {
        y[0:8] = fma(x[0:8], x[0:8], x[0:8])
      }
    }
  }
}
