# A block of two warps: registers of their own, scratch that both read, copies that are awaited.
# engines: interp
# input x = f32[2,8] {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
# output y = f32[2,8] {28, 92, 2, 3, 0, 0, 0, 0, 28, 92, 10, 11, 0, 0, 0, 0}
prog p
threads 65536
buf x: in f32[2,8]
buf y: out f32[2,8]
buf s: local f32[2,8]
buf r: local f32[2]
buf acc: reg f32x4[2,2]
kernel "block" {
  for t in 0..2 parallel {
    for i in 0..4 thread {
      async s[div(i, 2), mod(i, 2) * 4:4] = x[div(i, 2), mod(i, 2) * 4:4]
    }
    commit
    await 0
    for w in 0..2 warp barrier {
      for j in 0..2 unroll {
        acc[w, j] = s[w, j * 4:4]
      }
    }
    for w in 0..2 warp {
      r[w] = reduce.add(acc[w, 0] + acc[w, 1])
    }
    for i in 0..8 thread barrier {
      if i < 2 {
        y[t, i] = r[i]
      } else {
        y[t, i] = select(i < 4, s[t, i], 0.0)
      }
    }
  }
}
