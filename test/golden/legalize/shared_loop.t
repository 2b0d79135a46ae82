# threads that share a loop have registers of their own
# run: --march=avx2 --start=unroll --stop=legalize
prog
threads 2
buf x: in f32[4,8]
buf y: out f32[4,8]
buf acc: reg f32x8[1]
kernel "square" {
  for i in 0..4 parallel {
    for k in 0..3 {
      acc[0] = acc[0] + x[i, 0:8]
    }
    y[i, 0:8] = acc[0]
  }
}

# expect
ingot 2
prog
threads 2
buf x: in f32[4,8]
buf y: out f32[4,8]
buf acc: reg f32x8[1]
kernel "square" {
  for i in 0..4 parallel {
    let acc_0: f32x8 = splat.8(0.0)
    for k in 0..3 {
      set acc_0 = acc_0 + x[i, 0:8]
    }
    y[i, 0:8] = acc_0
  }
}
