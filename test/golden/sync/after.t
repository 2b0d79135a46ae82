# Constants are copied before earlier kernels end; the first loop that reads x waits for them.
# run: --start=sync --stop=sync
prog
threads 65536
buf x: in f32[64]
buf y: out f32[64]
buf w: const f32[64] = {1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0}
buf s: local f32[64]
kernel "after" {
  for t in 0..1 parallel {
    for i in 0..64 thread {
      s[i] = w[i]
    }
    for k in 0..2 {
      for i in 0..64 thread {
        y[i] = s[i] + x[i]
      }
    }
  }
}

# expect
ingot 2
prog
threads 65536
buf x: in f32[64]
buf y: out f32[64]
buf w: const f32[64] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
buf s: local f32[64]
kernel "after" {
  for t in 0..1 parallel {
    for i in 0..64 thread barrier {
      s[i] = w[i]
    }
    for k in 0..2 after {
      for i in 0..64 thread barrier {
        y[i] = s[i] + x[i]
      }
    }
  }
}
