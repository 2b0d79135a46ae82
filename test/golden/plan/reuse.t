# Buffers that are not needed at the same time share their place; a view is where its buffer is; what nobody uses is gone.
# run: --start=plan
prog reuse
buf x: in f32[32]
buf y: out f32[32]
buf a: temp f32[32]
buf unused: temp f32[1000]
buf b: temp f32[32]
buf v: temp f32[4,8] alias b
buf c: temp f32[32]
kernel "a" {
  for i in 0..32 {
    a[i] = x[31 - i]
  }
}
kernel "b" {
  for i in 0..32 {
    b[i] = a[31 - i]
  }
}
kernel "c" {
  for i in 0..8 {
    for k in 0..4 {
      c[i * 4 + k] = v[k, i]
    }
  }
}
kernel "y" {
  for i in 0..32 {
    y[i] = c[i]
  }
}

# expect
ingot 2
prog reuse
arena 256
buf x: in f32[32]
buf y: out f32[32]
buf a: temp f32[32] at 0
buf b: temp f32[32] at 128
buf v: temp f32[4,8] alias b
buf c: temp f32[32] at 0
kernel "a" {
  for i in 0..32 {
    a[i] = x[31 - i]
  }
}
kernel "b" {
  for i in 0..32 {
    b[i] = a[31 - i]
  }
}
kernel "c" {
  for i in 0..8 {
    for k in 0..4 {
      c[i * 4 + k] = v[k, i]
    }
  }
}
kernel "y" {
  for i in 0..32 {
    y[i] = c[i]
  }
}
