# Results that no other loop reads need no barrier; registers need none either.
# run: --start=sync --stop=sync
prog
threads 65536
buf x: in f32[4,32]
buf y: out f32[4,32]
buf z: out f32[4,32]
buf a: reg f32x32[4]
kernel "own" {
  for t in 0..1 parallel {
    for w in 0..4 warp {
      a[w] = x[w, 0:32]
    }
    for w in 0..4 warp {
      y[w, 0:32] = a[w]
    }
    for w in 0..4 warp {
      z[w, 0:32] = a[w] + x[w, 0:32]
    }
  }
}

# expect
ingot 2
prog
threads 65536
buf x: in f32[4,32]
buf y: out f32[4,32]
buf z: out f32[4,32]
buf a: reg f32x32[4]
kernel "own" {
  for t in 0..1 parallel {
    for w in 0..4 warp {
      a[w] = x[w, 0:32]
    }
    for w in 0..4 warp barrier {
      y[w, 0:32] = a[w]
    }
    for w in 0..4 warp {
      z[w, 0:32] = a[w] + x[w, 0:32]
    }
  }
}
