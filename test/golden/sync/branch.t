# A barrier inside a condition is none for the path around it.
# run: --start=sync --stop=sync
prog
threads 65536
buf x: in f32[8,64]
buf y: out f32[8,64]
buf s: local f32[64]
kernel "branch" {
  for t in 0..1 parallel {
    for k in 0..8 {
      for i in 0..64 thread {
        s[i] = x[k, i]
      }
      if k < 4 {
        for i in 0..64 thread {
          y[k, i] = s[63 - i]
        }
      }
      for i in 0..64 thread {
        y[k, i] = s[63 - i] + s[i]
      }
    }
  }
}

# expect
ingot 2
prog
threads 65536
buf x: in f32[8,64]
buf y: out f32[8,64]
buf s: local f32[64]
kernel "branch" {
  for t in 0..1 parallel {
    for k in 0..8 {
      for i in 0..64 thread barrier {
        s[i] = x[k, i]
      }
      if k < 4 {
        for i in 0..64 thread barrier {
          y[k, i] = s[63 - i]
        }
      }
      for i in 0..64 thread barrier {
        y[k, i] = s[63 - i] + s[i]
      }
    }
  }
}
