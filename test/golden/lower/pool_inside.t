# a pool in plain order: vectors of every second element where the window is inside, the edge one by one
# run: --march=sse2 --start=layout --stop=lower
graph
(%x: f32[1,1,4,12]) {
  %p: f32[1,1,2,6] = pool_max(%x) {window=[2,3], stride=[2,2], dilation=[1,1], pad_lo=[0,1], pad_hi=[0,0]}
  return %p
}

# expect
ingot 2
prog
math fast
buf b1: in f32[1,1,4,12]
buf b2: out f32[1,1,2,6]
buf acc: reg f32x4[2,1]
buf acc1: reg f32x4[2,1]
kernel "pool_max2x3_s2"
    as interior out b2 ns 7 reason "5 of 6 positions"
    as vertical rows 2 panels 1 lanes 4 sum f32 of f32 out b2 ns 31 reason "2 accumulators in 12 registers" {
  for p in 0..2 as row 2 unroll {
    acc[p, 0] = splat.4(-inf)
  }
  for m in 0..2 as reduce 2 unroll {
    for n in 0..3 as reduce 2 unroll {
      for p in 0..2 as row 2 unroll {
        acc[p, 0] = max(acc[p, 0], shuffle.0.2.5.7(b1[0, 0, p * 2 + m, n + 1:4], b1[0, 0, p * 2 + m, n + 4:4]))
      }
    }
  }
  for p in 0..2 as row 2 unroll {
    b2[0, 0, p, 1:4] = acc[p, 0]
  }
  for p in 0..2 as row 2 unroll {
    acc1[p, 0] = splat.4(-inf)
  }
  for m in 0..2 as reduce 2 unroll {
    for n in 0..3 as reduce 2 unroll {
      for p in 0..2 as row 2 unroll {
        acc1[p, 0] = max(acc1[p, 0], shuffle.0.2.5.7(b1[0, 0, p * 2 + m, n + 3:4], b1[0, 0, p * 2 + m, n + 6:4]))
      }
    }
  }
  for p in 0..2 as row 2 unroll {
    b2[0, 0, p, 2:4] = acc1[p, 0]
  }
  for k in 0..2 as batch {
    let acc: f32 = -inf
    for m in 0..2 as reduce {
      for n in 1..3 as reduce {
        set acc = max(acc, b1[0, 0, k * 2 + m, n - 1])
      }
    }
    b2[0, 0, k, 0] = acc
  }
}
