# Readers of what an async store copied meet after the await, writers after earlier readers; the loop is compared with its next iteration.
# run: --start=sync --stop=sync
prog
threads 65536
buf x: in f32[8,64]
buf y: out f32[8,64]
buf s: local f32[2,64]
buf acc: reg f32[64]
kernel "ring" {
  for t in 0..1 parallel {
    for i in 0..64 thread {
      acc[i] = 0.0
      async s[0, i] = x[0, i]
    }
    commit
    for k in 0..7 {
      await 0
      for i in 0..64 thread {
        async s[mod(k + 1, 2), i] = x[k + 1, i]
      }
      commit
      for i in 0..64 thread {
        acc[i] = acc[i] + s[mod(k, 2), 63 - i]
      }
    }
    for i in 0..64 thread {
      y[0, i] = acc[i]
    }
  }
}

# expect
ingot 2
prog
threads 65536
buf x: in f32[8,64]
buf y: out f32[8,64]
buf s: local f32[2,64]
buf acc: reg f32[64]
kernel "ring" {
  for t in 0..1 parallel {
    for i in 0..64 thread barrier {
      acc[i] = 0.0
      async s[0, i] = x[0, i]
    }
    commit
    for k in 0..7 {
      await 0
      for i in 0..64 thread barrier {
        async s[mod(k + 1, 2), i] = x[k + 1, i]
      }
      commit
      for i in 0..64 thread {
        acc[i] = acc[i] + s[mod(k, 2), 63 - i]
      }
    }
    for i in 0..64 thread {
      y[0, i] = acc[i]
    }
  }
}
