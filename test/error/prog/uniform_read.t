# all threads read, in a statement that no barrier precedes, what a thread loop of the kernel stored
# run: opt --start=sync --stop=sync
# exit: 3
# expect-stderr: stores to s and reads it outside of its warp and thread loops
prog
threads 65536
buf y: out f32[64]
buf s: local f32[64]
kernel "uniform" {
  for t in 0..1 parallel {
    for i in 0..64 thread {
      s[i] = 1.0
    }
    let c: f32 = s[0]
    for i in 0..64 thread {
      y[i] = c
    }
  }
}
