# Fragments: a product of a warp whose second operand lies transposed, in registers of each warp.
# engines: interp
# input x = f16[16,16] {1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
# output y = f32[2,3] {14.0, 7.0, 4.0, 17.0, 1.0, 0.0}
prog p
threads 65536
buf x: in f16[16,16]
buf y: out f32[2,3]
buf s: local f16[16,16]
buf r: local f32[2,16,16]
buf acc: reg f32x16x16[2]
kernel "block" {
  for t in 0..1 parallel {
    for i in 0..32 thread {
      async s[div(i, 2), mod(i, 2) * 8:8] = x[div(i, 2), mod(i, 2) * 8:8]
    }
    commit
    await 0
    for w in 0..2 warp barrier {
      acc[w] = splat.16x16(0.0)
      let a: f16x16x16 = s[0:16, 0:16]
      if w < 1 {
        acc[w] = mma(a, s[0:16, 0:16], acc[w])
      } else {
        acc[w] = mma(a, turn(s[0:16, 0:16]), acc[w])
      }
      r[w, 0:16, 0:16] = acc[w]
    }
    for i in 0..8 thread barrier {
      if i < 2 {
        y[i, 0] = r[i, 0, 0] + cast.f32(i) * 4.0
        y[i, 1] = r[i, 0, 15] + select(i < 1, 3.0, -2.0)
        y[i, 2] = select(i < 1, r[i, 15, 0], r[i, 0, 1] - r[i, 0, 1])
      }
    }
  }
}
