# a bound that only a run knows, and more statements than a function should have
# run: --march=avx2 --start=unroll --stop=unroll
prog
sym n in 1..4
buf x: in f32[n]
buf y: out f32[n]
buf z: out f32[30000]
kernel "open" {
  for i in 0..n unroll {
    y[i] = x[i]
  }
}
kernel "long" {
  for i in 0..30000 unroll {
    z[i] = 1.0
  }
}

# expect
ingot 2
prog
sym n in 1..4
buf x: in f32[n]
buf y: out f32[n]
buf z: out f32[30000]
kernel "open" {
  for i in 0..n unroll {
    y[i] = x[i]
  }
}
kernel "long" {
  for i in 0..30000 unroll {
    z[i] = 1.0
  }
}
