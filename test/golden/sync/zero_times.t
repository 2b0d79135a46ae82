# A barrier in a loop that may run zero times is none for the path around it.
# run: --start=sync --stop=sync
prog
sym n in 0..8
threads 65536
buf x: in f32[n,64]
buf w: in f32[64]
buf y: out f32[64]
buf z: out f32[64]
buf s: local f32[64]
kernel "zero" {
  for t in 0..1 parallel {
    for i in 0..64 thread {
      s[i] = w[i]
    }
    for k in 0..n {
      for i in 0..64 thread {
        y[i] = s[63 - i]
      }
      for i in 0..64 thread {
        y[i] = x[k, i]
      }
    }
    for i in 0..64 thread {
      z[i] = s[63 - i]
    }
  }
}

# expect
ingot 2
prog
sym n in 0..8
threads 65536
buf x: in f32[n,64]
buf w: in f32[64]
buf y: out f32[64]
buf z: out f32[64]
buf s: local f32[64]
kernel "zero" {
  for t in 0..1 parallel {
    for i in 0..64 thread barrier {
      s[i] = w[i]
    }
    for k in 0..n {
      for i in 0..64 thread barrier {
        y[i] = s[63 - i]
      }
      for i in 0..64 thread barrier {
        y[i] = x[k, i]
      }
    }
    for i in 0..64 thread barrier {
      z[i] = s[63 - i]
    }
  }
}
