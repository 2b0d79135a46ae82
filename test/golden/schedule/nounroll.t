# the loop that adds products of 16 bits is not written out by compilers; that around it and one of another machine's mark may be
# run: --march=avx2 --start=schedule
prog
buf x: in i32[3,100]
buf w: in i32[100,8]
buf y: out i32[3,8]
buf acc: reg i32x8[1]
kernel "product" {
  for i in 0..3 nounroll {
    acc[0] = splat.8(0:i32)
    for k in 0..100 {
      for r in 0..1 unroll {
        acc[r] = dot_i16x2(splat.8(x[i, k]), w[k, 0:8], acc[r])
      }
    }
    y[i, 0:8] = acc[0]
  }
}

# expect
ingot 2
prog
buf x: in i32[3,100]
buf w: in i32[100,8]
buf y: out i32[3,8]
buf acc: reg i32x8[1]
kernel "product" noinline {
  for i in 0..3 {
    acc[0] = splat.8(0:i32)
    for k in 0..100 nounroll {
      for r in 0..1 unroll {
        pin acc[r] = dot_i16x2(splat.8(x[i, k]), w[k, 0:8], acc[r])
      }
    }
    y[i, 0:8] = acc[0]
  }
}
