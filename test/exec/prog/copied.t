# A variable that registers begin with, each of them: the first is no other name for it.
# input x = i32[2] {3, -5}
# output y = i32[3] {2, 4, 6}
prog copied
buf x: in i32[2]
buf y: out i32[3]
buf n: reg i32[1,3]
buf sum: reg i32[1,3]
kernel "copied" {
  for v in 0..3 unroll {
    sum[0, v] = 0:i32
  }
  for u in 0..2 {
    let less: i32 = x[u] * 3:i32
    for v in 0..3 unroll {
      n[0, v] = less
    }
    for v in 0..3 unroll {
      n[0, v] = n[0, v] + cast.i32(v + 4)
    }
    for v in 0..3 unroll {
      sum[0, v] = sum[0, v] + n[0, v]
    }
  }
  for v in 0..3 unroll {
    y[v] = sum[0, v]
  }
}
