# records of a kernel and roles of its loops are read and printed
# run: --stop=none
ingot 2
prog
buf x: in f32[4,3]
buf w: in f32[3,8]
buf y: out f32[4,8]
buf acc: reg f32x8[2,1]
buf s: out f32[]
kernel "matmul_sum"
    as outer_product rows 2 panels 1 lanes 8 sum f32 of f32, f32 packed w out y ns 100 reason "2 rows share \"w\""
    as plain sum f32 of f32 out s
    as border size "F(4x4)" {
  for r in 0..2 as row {
    for p in 0..2 as row unroll {
      acc[p, 0] = splat.8(0.0)
    }
    for k in 0..3 as reduce {
      for p in 0..2 as row unroll {
        acc[p, 0] = acc[p, 0] + splat.8(x[r * 2 + p, k]) * w[k, 0:8]
      }
    }
    for p in 0..2 as row unroll {
      y[r * 2 + p, 0:8] = acc[p, 0]
    }
  }
  let t: f32 = 0.0
  for r in 0..4 as reduce 2 {
    for c in 0..8 as reduce 2 {
      set t = t + y[r, c]
    }
  }
  s[] = t
  for r in 0..4 as batch 0 {
    y[r, 0] = 1.0
  }
}

# expect
ingot 2
prog
buf x: in f32[4,3]
buf w: in f32[3,8]
buf y: out f32[4,8]
buf acc: reg f32x8[2,1]
buf s: out f32[]
kernel "matmul_sum"
    as outer_product rows 2 panels 1 lanes 8 sum f32 of f32, f32 packed w out y ns 100 reason "2 rows share \"w\""
    as plain sum f32 of f32 out s
    as border size "F(4x4)" {
  for r in 0..2 as row {
    for p in 0..2 as row unroll {
      acc[p, 0] = splat.8(0.0)
    }
    for k in 0..3 as reduce {
      for p in 0..2 as row unroll {
        acc[p, 0] = acc[p, 0] + splat.8(x[r * 2 + p, k]) * w[k, 0:8]
      }
    }
    for p in 0..2 as row unroll {
      y[r * 2 + p, 0:8] = acc[p, 0]
    }
  }
  let t: f32 = 0.0
  for r in 0..4 as reduce 2 {
    for c in 0..8 as reduce 2 {
      set t = t + y[r, c]
    }
  }
  s[] = t
  for r in 0..4 as batch 0 {
    y[r, 0] = 1.0
  }
}
