# Both branches of an if: what is written in one and read behind it keeps its place throughout.
# run: --start=plan
prog branches
buf x: in f32[32]
buf go: in bool[]
buf y: out f32[32]
buf a: temp f32[32]
buf b: temp f32[32]
buf r: temp f32[32]
if go[] {
  kernel "a" {
    for i in 0..32 {
      a[i] = x[31 - i]
    }
  }
  kernel "r" {
    for i in 0..32 {
      r[i] = a[31 - i]
    }
  }
} else {
  kernel "b" {
    for i in 0..32 {
      b[i] = x[i] * 2.0
    }
  }
  kernel "r" {
    for i in 0..32 {
      r[i] = b[31 - i]
    }
  }
}
kernel "y" {
  for i in 0..32 {
    y[i] = r[i]
  }
}

# expect
ingot 2
prog branches
arena 256
buf x: in f32[32]
buf go: in bool[]
buf y: out f32[32]
buf a: temp f32[32] at 128
buf b: temp f32[32] at 128
buf r: temp f32[32] at 0
if go[] {
  kernel "a" {
    for i in 0..32 {
      a[i] = x[31 - i]
    }
  }
  kernel "r" {
    for i in 0..32 {
      r[i] = a[31 - i]
    }
  }
} else {
  kernel "b" {
    for i in 0..32 {
      b[i] = x[i] * 2.0
    }
  }
  kernel "r" {
    for i in 0..32 {
      r[i] = b[31 - i]
    }
  }
}
kernel "y" {
  for i in 0..32 {
    y[i] = r[i]
  }
}
