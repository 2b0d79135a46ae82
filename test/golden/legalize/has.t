# AVX2 rounds, multiplies pairs and changes signs at once; a scalar is left to the back end; three lanes are scalars
# run: --march avx2 --start=legalize --stop=legalize
prog has
buf x: in f32[11]
buf a: in i32[8]
buf y: out f32[11]
buf z: out i32[8]
kernel "has" {
  y[0:11] = floor(x[0:11])
  z[0:8] = maddubs(psign(a[0:8], a[0:8]), a[0:8], splat.8(0:i32))
  y[0] = ceil(x[0])
}

# expect
ingot 2
prog has
buf x: in f32[11]
buf a: in i32[8]
buf y: out f32[11]
buf z: out i32[8]
kernel "has" {
  y[0:8] = floor(x[0:8])
  y[8] = floor(x[8])
  y[9] = floor(x[9])
  y[10] = floor(x[10])
  z[0:8] = maddubs(psign(a[0:8], a[0:8]), a[0:8], splat.8(0:i32))
  y[0] = ceil(x[0])
}
