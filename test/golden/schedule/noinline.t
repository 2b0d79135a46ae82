# a kernel whose unrolled loops leave 8 multiply-adds of registers stays a function; with 7, or of single lanes, compilers decide; a product of bytes is enough
# run: --march avx2 --start=schedule --stop=schedule
prog noinline
buf x: in f32[8,16]
buf b: in i32[8]
buf y: out f32[16]
buf z: out f32[16]
buf s: out f32[16]
buf n: out i32[8]
buf acc: reg f32x16[1]
buf few: reg f32x8[1]
kernel "many" {
  acc[0] = splat.16(0.0)
  for i in 0..4 unroll {
    acc[0] = fma(x[i, 0:16], x[i, 0:16], acc[0])
  }
  y[0:16] = acc[0]
}
kernel "few" {
  few[0] = splat.8(0.0)
  for i in 0..7 unroll {
    few[0] = fma(x[i, 0:8], x[i, 0:8], few[0])
  }
  z[0:8] = few[0]
}
kernel "single" {
  for i in 0..16 {
    s[i] = fma(x[0, i], x[1, i], x[2, i])
  }
}
kernel "bytes" {
  n[0:8] = dot_i8x4(b[0:8], b[0:8], b[0:8])
}

# expect
ingot 2
prog noinline
buf x: in f32[8,16]
buf b: in i32[8]
buf y: out f32[16]
buf z: out f32[16]
buf s: out f32[16]
buf n: out i32[8]
buf acc: reg f32x16[1]
buf few: reg f32x8[1]
kernel "many" noinline {
  acc[0] = splat.16(0.0)
  for i in 0..4 unroll {
    acc[0] = fma(x[i, 0:16], x[i, 0:16], acc[0])
  }
  y[0:16] = acc[0]
}
kernel "few" {
  few[0] = splat.8(0.0)
  for i in 0..7 unroll {
    few[0] = fma(x[i, 0:8], x[i, 0:8], few[0])
  }
  z[0:8] = few[0]
}
kernel "single" {
  for i in 0..16 {
    s[i] = fma(x[0, i], x[1, i], x[2, i])
  }
}
kernel "bytes" noinline {
  n[0:8] = dot_i8x4(b[0:8], b[0:8], b[0:8])
}
