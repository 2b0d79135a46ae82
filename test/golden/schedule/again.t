# marks that the text has are those of another machine, and go
# run: --march=avx2 --start=schedule
prog
buf x: in f32[64,8]
buf y: out f32[64,8]
buf a: reg f32x8[]
kernel "copy" {
  barrier x
  for i in 0..64 {
    barrier x many
    hold a[] = x[i, 0:8]
    y[i, 0:8] = a[]
    barrier y
  }
}

# expect
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
