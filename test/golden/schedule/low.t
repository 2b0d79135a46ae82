# bytes that a mask leaves below 128 are few for dot_i8x4; others, and masks that are computed, are not
# run: --march avx2 --start=schedule --stop=schedule
prog low
buf a: in i32[8]
buf b: in i32[8]
buf y: out i32[8]
buf z: out i32[8]
buf w: out i32[8]
kernel "low" {
  y[0:8] = dot_i8x4(and(a[0:8], splat.8(252645135:i32)), b[0:8], b[0:8])
}
kernel "high" {
  z[0:8] = dot_i8x4(and(a[0:8], splat.8(255:i32)), b[0:8], b[0:8])
}
kernel "computed" {
  w[0:8] = dot_i8x4.low(and(a[0:8], b[0:8]), b[0:8], b[0:8])
}

# expect
ingot 2
prog low
buf a: in i32[8]
buf b: in i32[8]
buf y: out i32[8]
buf z: out i32[8]
buf w: out i32[8]
kernel "low" noinline {
  y[0:8] = dot_i8x4.low(and(a[0:8], splat.8(252645135:i32)), b[0:8], b[0:8])
}
kernel "high" noinline {
  z[0:8] = dot_i8x4(and(a[0:8], splat.8(255:i32)), b[0:8], b[0:8])
}
kernel "computed" noinline {
  w[0:8] = dot_i8x4(and(a[0:8], b[0:8]), b[0:8], b[0:8])
}
