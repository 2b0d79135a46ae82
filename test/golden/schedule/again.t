# marks that the text has are those of another machine, and go
# run: --march=avx2 --start=schedule
prog
buf x: in f32[64,8]
buf y: out f32[64,8]
buf a: reg f32x8[]
kernel "copy" {
  fence x
  for i in 0..64 {
    fence x spills
    pin a[] = x[i, 0:8]
    y[i, 0:8] = a[]
    fence y
  }
}

# expect
ingot 2
prog
buf x: in f32[64,8]
buf y: out f32[64,8]
buf a: reg f32x8[]
kernel "copy" {
  for i in 0..64 {
    a[] = x[i, 0:8]
    y[i, 0:8] = a[]
  }
}
